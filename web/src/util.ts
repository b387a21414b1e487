/** Small helpers without a better place. */
import type { Json } from '../../engine/util/json.ts';

/** A random id; `crypto.randomUUID` is missing on plain http. */
export function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The fields of an unknown value; none if it is not an object. */
export const fieldsOf = (found: unknown): Json => (typeof found === 'object' && found !== null ? (found as Json) : {});

/** Formats bytes for people: 10.9 MB. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = bytes / 1000;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]!}`;
}

/** Turns an error's message into a sentence; a name at its beginning (config.json, parley-chat) is not capitalised. */
export function sentence(message: string): string {
  const text = message.replace(/^[a-z]+(?=[ ,'])/, (word) => word[0]!.toUpperCase() + word.slice(1));
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** The message of anything thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Quotes a text as one word of a shell command. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The number in a seed field; undefined (random) if it holds none. */
export const seedOf = (text: string): number | undefined => (/^-?\d+$/.test(text.trim()) ? Number(text) : undefined);

/** Says why a browser refuses to store something; for lack of space its error has only a name. */
export function whyNotKept(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'QuotaExceededError')
    return 'this browser has no more space for this page. Stored models can be deleted under Models.';
  return error.message || error.name;
}

/** Formats an integer for people: 2,048. */
export const formatCount = (count: number): string => count.toLocaleString('en');

/** Resolves like `work`, but rejects with an AbortError as soon as `signal` aborts. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }));
  return Promise.race([work, aborted]);
}

/** Formats seconds as m:ss. */
export function formatTime(seconds: number): string {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

/** Formats seconds as m:ss.t. */
export function formatTenths(seconds: number): string {
  const tenths = Math.round(seconds * 10);
  return `${formatTime(tenths / 10)}.${tenths % 10}`;
}

/** Formats a number with as many decimals as its step has. */
export function formatStep(value: number, step: number): string {
  return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
}

/** Downloads a Blob as a file of this name. */
export function download(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // Revoking at once would cancel the download in some browsers.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Copies text to the clipboard; false where the page may not. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Yields to all other tasks that wait for this thread. */
export function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => resolve(port1.close());
    port2.postMessage(0);
  });
}
