/** Clients of a server of its own: how long until the first byte and the last, and what both processes computed. */
import { readFileSync } from 'node:fs';
import { formBody } from '../../support/listeners.ts';
import type { Running } from '../../support/server-process.ts';
import { childOf } from '../serving/soak.ts';

export interface AudioLoad {
  readonly clients: number;
  /** Seconds of audio spoken or heard. */
  readonly audio: number;
  /** Wall seconds, and seconds of processor time of server and engine. */
  readonly seconds: number;
  readonly cpu: number;
  /** Seconds until the first byte of the body, of each request. */
  readonly first: readonly number[];
}

interface Answer {
  readonly first: number;
  readonly bytes: number;
}

/** Processor seconds of the server and of its engine, from Linux's own count of ticks. */
function cpuSeconds({ child }: Running): number {
  const processes = [child.pid!, childOf(child.pid!)].filter((pid) => pid !== undefined);
  return processes.reduce((sum, pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return sum + (Number(fields[11]) + Number(fields[12])) / 100;
  }, 0);
}

async function ask(url: string, options: RequestInit): Promise<Answer> {
  const from = performance.now();
  const response = await fetch(url, { method: 'POST', ...options });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  let first = 0;
  let bytes = 0;
  for await (const chunk of response.body!) {
    if (bytes === 0) first = (performance.now() - from) / 1000;
    bytes += chunk.length;
  }
  return { first, bytes };
}

/** So many clients at once, each with one request after the other. */
async function load(server: Running, clients: number, turns: number, one: (index: number) => Promise<Answer>): Promise<Omit<AudioLoad, 'audio'> & { readonly bytes: number }> {
  const cpu = cpuSeconds(server);
  const from = performance.now();
  const answers: Answer[] = [];
  const client = async (number: number): Promise<void> => {
    for (let turn = 0; turn < turns; turn++) answers.push(await one(number + turn * clients));
  };
  await Promise.all(Array.from({ length: clients }, (_, number) => client(number)));
  const seconds = (performance.now() - from) / 1000;
  const bytes = answers.reduce((sum, answer) => sum + answer.bytes, 0);
  return { clients, seconds, cpu: cpuSeconds(server) - cpu, first: answers.map(({ first }) => first), bytes };
} // prettier-ignore

/** Streams of raw samples, so that no encoder holds the first byte back. */
export async function speak(server: Running, text: string, clients: number, turns: number): Promise<AudioLoad> {
  const voices = ['oni', 'nona', 'vulcan', 'charter'];
  const { bytes, ...measured } = await load(server, clients, turns, (index) => {
    const body = { model: 'tts-1', input: text, voice: voices[index % voices.length], response_format: 'pcm', stream: true, seed: index };
    return ask(`${server.urls['speech']}/audio/speech`, { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  });
  return { ...measured, audio: bytes / 2 / 24_000 };
}

/** Uploads of one file of so many seconds. */
export async function transcribe(server: Running, file: Buffer, seconds: number, clients: number, turns: number): Promise<AudioLoad> {
  const body = formBody([['model', 'whisper-1'], ['language', 'en'], ['file', file]]); // prettier-ignore
  const headers = { 'content-type': 'multipart/form-data; boundary=XX' };
  const { bytes: _, ...measured } = await load(server, clients, turns, () => ask(`${server.urls['transcription']}/audio/transcriptions`, { headers, body: new Uint8Array(body) })); // prettier-ignore
  return { ...measured, audio: clients * turns * seconds };
}
