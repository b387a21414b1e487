/**
 * `npm run bench -- audio-memory [minutes ...]` (default 1, 30 and 120; Linux): uploads speech of these lengths as 16 kHz mono 16-bit WAV to a
 * server of its own and prints what the server's process and the engine's hold beside it: while it is received, decoded and handed over, and
 * once the first windows are heard. The transcription is then given up: it holds no more later.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseWav, wavHeader } from '../../engine/audio/wav.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import { fixed, loadText, printTable } from './harness.ts';
import { childOf } from './serving/soak.ts';

const SERVER = new URL('../../server/main.ts', import.meta.url);
const CLIP = fileURLToPath(new URL('../fixtures/parley-transcribe/clip.wav', import.meta.url));
const RATE = 16_000;
/** Segments after which the first windows are through. */
const HEARD_SEGMENTS = 2;

/** MiB of a process: resident now, and the most since the last reset. */
function memoryOf(pid: number): { readonly resident: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const read = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? NaN) / 1024;
  return { resident: read('VmRSS'), peak: read('VmHWM') };
}

/** Lets the kernel count the peak of a process anew. */
const resetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, '5');

interface Upload {
  /** Seconds until the engine had taken it, and until its first windows were heard. */
  readonly taken: number;
  readonly heard: number;
}

/** Sends that many minutes of speech and leaves once the first of it is heard; `onTaken` is called when the engine has taken it. */
async function upload(url: string, minutes: number, onTaken: () => void): Promise<Upload> {
  const clip = parseWav(readFileSync(CLIP)).data;
  const bytes = minutes * 60 * RATE * 2;
  const field = (name: string, value: string): string => `--XX\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const file = '--XX\r\nContent-Disposition: form-data; name="file"; filename="speech.wav"\r\n\r\n';
  const head = Buffer.from(field('model', 'whisper-1') + field('stream', 'true') + file);
  const end = Buffer.from('\r\n--XX--\r\n');
  const headers = { 'content-type': 'multipart/form-data; boundary=XX', 'content-length': head.length + 44 + bytes + end.length };
  const request = httpRequest(`${url}/audio/transcriptions`, { method: 'POST', headers });
  const from = performance.now();
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  const send = async (chunk: Uint8Array): Promise<void> => {
    if (!request.write(chunk)) await once(request, 'drain');
  };
  await send(head);
  await send(wavHeader(RATE, bytes));
  for (let left = bytes; left > 0; left -= clip.length) await send(clip.subarray(0, left));
  request.end(end);
  const [response] = await answered;
  const taken = (performance.now() - from) / 1000;
  onTaken();
  let segments = 0;
  let text = '';
  for await (const chunk of response) {
    text += String(chunk);
    segments = text.split('"transcript.text.delta"').length - 1;
    if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${text}`);
    if (segments >= HEARD_SEGMENTS) break;
  }
  request.destroy();
  if (segments < HEARD_SEGMENTS) throw new Error(`the answer ended early: ${text}`);
  return { taken, heard: (performance.now() - from) / 1000 };
}

const lengths = process.argv.slice(2).map(Number);
const argv = ['--chat-model=none', '--speech-model=none', '--max-upload-mib=1024'];
const rows: string[][] = [];
for (const minutes of lengths.length > 0 ? lengths : [1, 30, 120]) {
  // A process of its own for each: what one upload leaves behind is not the next one's.
  const spawned = spawnAt(SERVER, argv);
  process.once('exit', () => spawned.child.kill('SIGKILL'));
  const server = await whenReady(spawned);
  const url = server.urls['transcription'];
  const pid = server.child.pid!;
  const engine = childOf(pid);
  if (url === undefined || engine === undefined) throw new Error(`the server did not start:\n${server.lines.join('\n')}`);
  const pids = [pid, engine];
  const idle = pids.map(memoryOf);
  pids.forEach(resetPeak);
  let taken: typeof idle = [];
  const { taken: takenAfter, heard: heardAfter } = await upload(url, minutes, () => (taken = pids.map(memoryOf)));
  const heard = pids.map(memoryOf);
  const mib = (value: number): string => fixed(value, 0);
  const columns = pids.flatMap((_, i) => [mib(idle[i]!.resident), mib(heard[i]!.peak), mib(taken[i]!.resident), mib(heard[i]!.resident)]);
  rows.push([`${minutes} min, ${mib((minutes * 60 * RATE * 2) / 2 ** 20)} MiB`, ...columns, fixed(takenAfter, 1), fixed(heardAfter, 1), loadText()]); // prettier-ignore
  server.child.kill('SIGINT');
  server.child.kill('SIGKILL');
  await server.exit;
}
console.log(`date ${new Date().toISOString().slice(0, 16)}Z; MiB resident: before, at most, when the engine has the sound, when its first words are heard\n`); // prettier-ignore
const parts = ['idle', 'peak', 'taken', 'heard'];
printTable(
  ['audio', ...parts.map((part) => `server ${part}`), ...parts.map((part) => `engine ${part}`), 's taken', 's heard', 'load'],
  rows,
);
process.exit(0);
