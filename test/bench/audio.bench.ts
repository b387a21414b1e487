/**
 * `npm run bench -- audio [--speech MODEL] [--transcription MODEL] [--part clients|rivals|whole]`: speech and transcription through HTTP with 1, 4, 16 and 64 requests at once
 * (real-time factors, time to the first byte, processor time), then the parts that cost most beside ONNX Runtime's WebGPU provider on the same adapter, outputs
 * compared first, then a whole Kokoro beside its export (`--export FOLDER` keeps it, or has one already). Says which claims hold. Linux, where processes tell their processor time.
 */
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { parseWav } from '../../engine/audio/wav.ts';
import { logMelDistance } from '../support/log-mel.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import { speak, transcribe } from './audio/clients.ts';
import type { AudioLoad } from './audio/clients.ts';
import { decoderDuel, encoderDuel, vocoderDuel } from './audio/duels.ts';
import type { Duel } from './audio/duels.ts';
import { exportWhole, wholeDuel } from './audio/whole.ts';
import { benchDevice, fixed, interleave, loadText, printMachine, printTable, relativeError } from './harness.ts';
import type { Contender } from './harness.ts';
import { percentile } from './serving/load.ts';

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const SERVER = new URL('../../server/main.ts', import.meta.url);
const SENTENCE = 'Your order is ready.';
const LOADS = [1, 4, 16, 64];
/** Requests of a row in one round at least. */
const REQUESTS = 64;
/** Rows take turns, so that what the machine does meanwhile falls on all of them. */
const ROUNDS = 8;
/** Seconds to the first byte of a short sentence, and how much more 16 requests at once get done than one after the other. */
const SOON = 0.5;
const AT_ONCE = 1.5;
/** Two ways to sum the same numbers. */
const NEAR = 2e-3;
/** Mean difference of log-mel energies, in nepers: phases of nearly silent bins turn with the last bit of an f32 sum of phases, so samples say too little. */
const NEAR_SOUND = 0.02;
const SAMPLE_RATE = 24_000;

const { values } = parseArgs({
  options: { speech: { type: 'string' }, transcription: { type: 'string' }, part: { type: 'string' }, export: { type: 'string' } },
});
const claims: string[] = [];
const claim = (holds: boolean, text: string): void => void claims.push(`${holds ? 'holds' : 'FAILS'}  ${text}`);

function rows(name: string, loads: readonly AudioLoad[]): string[][] {
  return loads.map(({ clients, audio, seconds, cpu, first }) => [
    `${name}, ${clients} at once`,
    fixed(seconds / audio, 3),
    fixed(audio / seconds, 1),
    fixed(1000 * percentile(first, 0.5), 0),
    fixed(1000 * percentile(first, 0.95), 0),
    fixed(cpu / audio, 3),
    loadText(),
  ]);
}

/** The loads of each round. */
async function inRounds(measure: (count: number) => Promise<AudioLoad>): Promise<readonly (readonly AudioLoad[])[]> {
  const rounds: AudioLoad[][] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const loads: AudioLoad[] = [];
    for (const count of LOADS) loads.push(await measure(count));
    rounds.push(loads);
  }
  return rounds;
}

/** What a load did in all rounds. */
function sums(rounds: readonly (readonly AudioLoad[])[]): readonly AudioLoad[] {
  return LOADS.map((count, i) => {
    const loads = rounds.map((round) => round[i]!);
    const sum = (value: (load: AudioLoad) => number): number => loads.reduce((total, load) => total + value(load), 0);
    const [audio, seconds, cpu] = [sum((load) => load.audio), sum((load) => load.seconds), sum((load) => load.cpu)];
    return { clients: count, audio, seconds, cpu, first: loads.flatMap(({ first }) => first) };
  });
}

/** How much more 16 requests at once get done than one after the other. */
function gainAtOnce(loads: readonly AudioLoad[]): number {
  const [alone, , together] = loads.map(({ audio, seconds }) => audio / seconds);
  return together! / alone!;
}

async function clients(): Promise<void> {
  const models = [...(values.speech ? [`--speech-model=${values.speech}`] : []), ...(values.transcription ? [`--transcription-model=${values.transcription}`] : [])]; // prettier-ignore
  const server = await whenReady(spawnAt(SERVER, ['--chat-model=none', ...models]));
  process.on('exit', () => server.child.kill('SIGKILL'));
  if (!server.urls['speech']) throw new Error(`the server did not start:\n${server.lines.join('\n')}`);
  const file = readFileSync(path('test/fixtures/lj-speech/LJ001-0002.wav'));
  const { sampleRate, channels, data } = parseWav(file);
  const seconds = data.length / 2 / channels / sampleRate;
  const turns = (count: number): number => Math.max(1, REQUESTS / count);
  await speak(server, SENTENCE, 1, 2);
  await transcribe(server, file, seconds, 1, 2);
  const spoken = await inRounds((count) => speak(server, SENTENCE, count, turns(count)));
  const heard = await inRounds((count) => transcribe(server, file, seconds, count, turns(count)));
  server.child.kill('SIGTERM');
  await server.exit;
  const header = [
    '',
    'seconds per second of audio',
    'seconds of audio per second',
    'first byte ms p50',
    'p95',
    'processor s per s',
    'load',
  ];
  printTable(header, [...rows('speech', sums(spoken)), ...rows('transcription', sums(heard))]);
  const first = percentile(sums(spoken)[0]!.first, 0.5);
  claim(first <= SOON, `the first byte of "${SENTENCE}" comes after ${fixed(1000 * first, 0)} ms (at most ${1000 * SOON})`);
  const gain = gainAtOnce(sums(spoken));
  const each = spoken.map((loads) => fixed(gainAtOnce(loads))).join(', ');
  claim(gain >= AT_ONCE, `16 spoken at once are ${fixed(gain)} times the throughput of one by one (at least ${AT_ONCE}; by round ${each})`);
}

/** Processor seconds of a run: this process has both contenders' threads, which take turns. */
async function processorSeconds({ run }: Contender): Promise<number> {
  const from = process.cpuUsage();
  for (let i = 0; i < 3; i++) await run();
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 3e6;
}

async function rivals(): Promise<void> {
  // With Dawn's checks on, as the server runs.
  const device = await benchDevice('default');
  printMachine(device);
  const transcription = values.transcription ?? path('models/parley-transcribe');
  const duels: (() => Promise<Duel>)[] = [
    () => encoderDuel(device, transcription),
    () => decoderDuel(device, transcription),
    // The two stages of the bundled model, with a sentence of 3.6 s.
    () => vocoderDuel(device, 64, 7, 1280),
    () => vocoderDuel(device, 32, 11, 7681),
    // The last stage of published Kokoro, with one of a second.
    () => vocoderDuel(device, 128, 11, 4801),
  ];
  const table: string[][] = [];
  for (const make of duels) {
    const { name, contenders, least } = await make();
    const [ours, theirs] = contenders;
    const error = relativeError(await ours.run(), await theirs.run());
    if (!(error <= NEAR)) {
      claim(false, `${name}: outputs differ by ${error.toExponential(1)}`);
      continue;
    }
    const cpu = [await processorSeconds(ours), await processorSeconds(theirs)] as const;
    const [mine, other] = await interleave(contenders);
    const ratio = other!.ms / mine!.ms;
    table.push([name, ...[mine!, other!].map(({ ms }) => fixed(ms, 1)), fixed(ratio), fixed(cpu[1] / cpu[0]), error.toExponential(1), loadText()]); // prettier-ignore
    claim(ratio >= least, `${name}: ${fixed(ratio)} times as fast as ONNX Runtime (at least ${least})`);
  }
  printTable(['', 'Parley ms', 'ORT webgpu ms', 'ratio', 'of processor time', 'largest difference', 'load'], table);
  device.close();
}

async function whole(): Promise<void> {
  const model = values.speech ?? path('models/parley-speech');
  const folder = values.export ?? join(mkdtempSync(join(tmpdir(), 'parley-onnx-')), 'speech');
  const failure = existsSync(join(folder, 'model.onnx')) ? undefined : exportWhole(model, folder);
  if (failure !== undefined) return console.log(`not run: ${failure}`);
  const device = await benchDevice('default');
  printMachine(device);
  const { contenders, samples, decoded } = await wholeDuel(device, model, folder);
  const seconds = samples.length / SAMPLE_RATE;
  const [ours, theirs] = [logMelDistance(await contenders[0].run(), samples, SAMPLE_RATE), logMelDistance(await contenders[1].run(), samples, SAMPLE_RATE)]; // prettier-ignore
  const error = relativeError(...decoded);
  claim(ours <= NEAR_SOUND, `whole Kokoro: log-mel distance of Parley's samples from PyTorch's ${fixed(ours, 4)} (at most ${NEAR_SOUND})`);
  claim(error <= NEAR, `whole Kokoro: ONNX Runtime's vocoder is given PyTorch's numbers to ${error.toExponential(1)} (its samples are ${fixed(theirs, 4)} off)`); // prettier-ignore
  const cpu = [await processorSeconds(contenders[0]), await processorSeconds(contenders[1])] as const;
  const [mine, other] = await interleave(contenders);
  const ratio = other!.ms / mine!.ms;
  const each = (value: number): string => fixed(value / seconds, 3);
  const row = [`${fixed(seconds)} s of audio`, each(mine!.ms / 1000), each(other!.ms / 1000), fixed(ratio), each(cpu[0]), each(cpu[1]), fixed(cpu[1] / cpu[0]), loadText()]; // prettier-ignore
  printTable(['whole Kokoro, a second of audio', 'Parley s', 'ORT webgpu s', 'ratio', 'Parley processor s', 'ORT', 'ratio', 'load'], [row]);
  claim(ratio >= 1.5, `whole Kokoro: ${fixed(ratio)} times as fast as ONNX Runtime (at least 1.5)`);
  device.close();
}

const parts = { clients, rivals, whole };
for (const [name, part] of Object.entries(parts)) if (values.part === undefined || values.part === name) await part();
for (const text of claims) console.log(text);
process.exit(claims.some((text) => text.startsWith('FAILS')) ? 1 : 0);
