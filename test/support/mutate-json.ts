/** Small changes of JSON texts and of bytes, for tests that feed damaged files. */
import type { createRng } from '../../engine/util/rng.ts';

export type Random = ReturnType<typeof createRng>;

/** One of a list. */
export const pick = <T>(rng: Random, list: readonly T[]): T => list[Math.floor(rng.uniform() * list.length)]!;

/** What a field may be replaced by; undefined takes it away. */
const ODD: readonly unknown[] = [
  undefined, null, true, -1, 0, 0.5, 3, 7, 1e9, 1e300, 2 ** 53, '', 'x', '5', [], [null], [1e9], {}, { a: null },
]; // prettier-ignore

/** Replaces one value somewhere inside a JSON text. */
export function mutateJson(rng: Random, text: string): string {
  const root = { value: JSON.parse(text) as unknown };
  let holder: Record<string, unknown> = root;
  let key = 'value';
  for (;;) {
    const value = holder[key];
    if (typeof value !== 'object' || value === null || Object.keys(value).length === 0 || (key !== 'value' && rng.uniform() < 0.3)) break;
    holder = value as Record<string, unknown>;
    key = pick(rng, Object.keys(holder));
  }
  const odd = pick(rng, ODD);
  if (odd === undefined && !Array.isArray(holder)) delete holder[key];
  else holder[key] = odd;
  return JSON.stringify(root.value) ?? '';
}

/** Cuts a file short, overwrites its beginning, or a few bytes near it. */
export function mutateBytes(rng: Random, bytes: Uint8Array): Uint8Array {
  const kind = rng.uniform();
  if (kind < 0.2) return bytes.slice(0, Math.floor(rng.uniform() * bytes.length));
  const copy = bytes.slice();
  if (kind < 0.4) copy.fill(Math.floor(rng.uniform() * 256), 0, 12);
  else for (let i = 0; i < 4; i++) copy[Math.floor(rng.uniform() * Math.min(4000, copy.length))] = Math.floor(rng.uniform() * 256);
  return copy;
}
