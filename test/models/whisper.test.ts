/** Whisper against transformers: a tiny random checkpoint stage by stage, and the bundled one with its golden fixture. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { floatStorage } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { transcriptPrompt } from '../../engine/models/whisper/config.ts';
import { copyCacheRows, createDecoderCache } from '../../engine/models/whisper/decoder.ts';
import { createEncoderWorkspace, encodeAudio, encodeKeyValues, encoderLayer, encoderStem } from '../../engine/models/whisper/encoder.ts';
import type { EncoderArgs } from '../../engine/models/whisper/encoder.ts';
import { loadWhisperModel } from '../../engine/models/whisper/load.ts';
import type { WhisperModel } from '../../engine/models/whisper/load.ts';
import { logMel, melInput } from '../../engine/ops/spectral.ts';
import { WhisperRunner } from '../../engine/runner/whisper-runner.ts';
import type { SampledToken } from '../../engine/runner/whisper-runner.ts';
import type { StepRow } from '../../engine/runner/whisper-step.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { expectClose, nmse } from '../support/compare.ts';
import { wordsOf } from '../support/words-of.ts';
import { argmax } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { compute, forcedLogits } from '../support/whisper-logits.ts';

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const json = <T>(name: string): T => JSON.parse(readFileSync(path(name), 'utf8')) as T;

/** Device, model and golden values of a folder. */
async function open(folder: string, golden: string): Promise<{ device: Device; model: WhisperModel; golden: Checkpoint }> {
  const device = await testDevice();
  const model = await loadWhisperModel(device, await openModelFolder(device.platform, path(folder)), floatStorage('f32'));
  return { device, model, golden: await openSafetensors(device.platform, path(golden), 'golden.safetensors') };
}

/** [A, B] -> [B, A]. */
function transpose(values: ArrayLike<number>, a: number, b: number): Float32Array {
  return Float32Array.from({ length: a * b }, (_, i) => values[(i % a) * b + Math.floor(i / a)]!);
}

interface Job {
  readonly slot: number;
  readonly prompt: readonly number[];
  readonly timestamps?: boolean;
}

/** Greedy tokens of several slots side by side, the next step submitted before the last one is read. */
async function greedy(runner: WhisperRunner, jobs: readonly Job[], count: number): Promise<SampledToken[][]> {
  const found: SampledToken[][] = jobs.map(() => []);
  const sampled = (timestamps: boolean | undefined, first: boolean): NonNullable<StepRow['sample']> =>
    timestamps ? { mask: first ? 'firstTimestamps' : 'timestamps', timestamps, first } : { mask: first ? 'firstText' : 'text', first };
  let pending: Promise<readonly SampledToken[]> | undefined;
  const take = async (): Promise<void> => (await pending)?.forEach((token, i) => found[i]!.push(token));
  for (let step = 0; step < count; step++) {
    const rows = jobs.flatMap(({ slot, prompt, timestamps }): StepRow[] => {
      const sample = sampled(timestamps, step === 0);
      if (step > 0) return [{ slot, position: prompt.length + step - 1, sample }];
      return prompt.map((token, position) => ({ slot, position, token, ...(position === prompt.length - 1 ? { sample } : {}) }));
    });
    const next = runner
      .step(rows)
      .tokens()
      .then((chosen) => chosen.map(([token]) => token!));
    await take();
    pending = next;
  }
  await take();
  return found;
}

const ids = (tokens: readonly SampledToken[]): number[] => tokens.map(({ token }) => token);

describe('a tiny random checkpoint', () => {
  const folder = 'test/fixtures/whisper-tiny-random';
  const tokens = json<{
    forced: number[];
    greedy: number[];
    greedy_timestamps: number[];
    language: number;
    no_speech_logprob: number;
  }>(`${folder}/golden.json`);
  let device: Device;
  let model: WhisperModel;
  let golden: Checkpoint;
  let audio: Float32Array;
  beforeAll(async () => {
    ({ device, model, golden } = await open(folder, folder));
    audio = await golden.read('audio');
  });
  afterAll(async () => {
    await golden.close();
    device.close();
  });

  test('agrees with transformers from the mel features to the cross-attention keys and values', async () => {
    const { config, logMel: mel } = model;
    const workspace = createEncoderWorkspace(device, config);
    const args: EncoderArgs = { ...model, workspace, frames: config.frames };
    device.write(workspace.samples, melInput(config.mel, audio, config.frames * config.mel.hop));
    const columns = workspace.features.shape[1]!;
    const features = await compute(device, workspace.features, (rec) =>
      logMel(rec, { logMel: mel, workspace: workspace.mel, samples: workspace.samples, out: workspace.features, frames: config.frames }),
    );
    const wanted = transpose(await golden.read('features'), config.mel.mels, config.frames);
    expectClose('features', features.filter((_, i) => i % columns < config.mel.mels), wanted, 1e-6); // prettier-ignore
    const stem = await compute(device, workspace.hidden, (rec) => encoderStem(rec, args));
    expectClose('stem', stem, await golden.read('stem'), 1e-6);
    for (let i = 0; i < config.encoder.layers; i++) {
      const hidden = await compute(device, workspace.hidden, (rec) => encoderLayer(rec, args, i, config.sourcePositions));
      expectClose(`encoder layer ${i}`, hidden, await golden.read(`encoder_layer${i}`), 1e-6);
    }
    const cache = createDecoderCache(device, config, { slots: 2, lanes: 1, copies: 2 });
    const encoded = await compute(device, workspace.normed, (rec) =>
      encodeKeyValues(rec, args, { out: cache.cross, first: cache.crossRows, rows: encodeAudio(rec, args) }),
    );
    expectClose('encoder', encoded, await golden.read('encoder'), 1e-6);
    for (let i = 0; i < config.decoder.layers; i++) {
      const all = new Float32Array((await wordsOf(device, cache.cross[i]!)).buffer);
      const pairs = all.subarray(cache.crossRows * 2 * config.channels);
      const keys = Float32Array.from({ length: config.sourcePositions * config.channels }, (_, at) => {
        return pairs[Math.floor(at / config.channels) * 2 * config.channels + (at % config.channels)]!;
      });
      expectClose(`cross keys ${i}`, keys, await golden.read(`cross_key${i}`), 1e-6);
      const values = keys.map((_, at) => pairs[(Math.floor(at / config.channels) * 2 + 1) * config.channels + (at % config.channels)]!);
      expectClose(`cross values ${i}`, values, await golden.read(`cross_value${i}`), 1e-6);
    }
  });

  test('agrees with transformers on the logits of forced tokens', async () => {
    expectClose('logits', await forcedLogits(device, model, audio, tokens.forced), await golden.read('forced_logits'), 1e-6);
  });

  test('continues with the same 64 greedy tokens', async () => {
    const runner = new WhisperRunner(device, model, { maxRunning: 1 });
    await runner.warmUp();
    runner.encode(0, audio);
    const [found] = await greedy(runner, [{ slot: 0, prompt: tokens.forced.slice(0, 4) }], 64);
    expect(ids(found!)).toEqual(tokens.greedy);
  });

  test("keeps transformers' rules for timestamps through 64 greedy tokens", async () => {
    const runner = new WhisperRunner(device, model, { maxRunning: 1 });
    await runner.warmUp();
    runner.encode(0, audio);
    const [found] = await greedy(runner, [{ slot: 0, prompt: tokens.forced.slice(0, 3), timestamps: true }], 64);
    expect(ids(found!)).toEqual(tokens.greedy_timestamps);
  });

  test('encodes a window that is not padded to its full length as transformers does with as many positions', async () => {
    const { config } = model;
    const [samples, frames] = [6400, 64];
    const short = await openSafetensors(device.platform, path(folder), 'golden_short.safetensors');
    const workspace = createEncoderWorkspace(device, config, frames);
    device.write(workspace.samples, melInput(config.mel, audio.subarray(0, samples), frames * config.mel.hop));
    const encoded = await compute(device, workspace.normed, (rec) => encodeAudio(rec, { ...model, workspace, frames }));
    const expected = await short.read('encoder');
    await short.close();
    expectClose('encoder', encoded, expected, 1e-6);
  });

  test('windows of different lengths side by side: each attends to its own positions', async () => {
    const { config } = model;
    const windows = { samples: 16000, frames: 128, padding: 20 };
    const runner = new WhisperRunner(device, { ...model, config: { ...config, windows } }, { maxRunning: 2 });
    await runner.warmUp();
    await runner.makeRoom(1);
    const prompt = transcriptPrompt(model.tokens, 'en', false);
    const hear = async (lengths: readonly number[]): Promise<SampledToken[][]> => {
      lengths.forEach((length, slot) => runner.encode(slot, audio.subarray(0, length)));
      const jobs = lengths.map((_, slot) => ({ slot, prompt }));
      return greedy(runner, jobs, 24);
    };
    const [short] = await hear([3200]);
    const [long] = await hear([16000]);
    expect(await hear([3200, 16000])).toEqual([short, long]);
    expect(await hear([16000, 3200])).toEqual([long, short]);
    expect(short).not.toEqual(long);
  });

  test('copies keys and values from lane to lane in every layer', async () => {
    const { config } = model;
    const cache = createDecoderCache(device, config, { slots: 1, lanes: 2, copies: 2 });
    const width = 2 * config.channels;
    const rowsOf = (values: Float32Array, row: number): number[] => [...values.subarray(row * width, (row + 1) * width)];
    for (const [i, tensor] of cache.self.entries())
      device.write(
        tensor,
        Float32Array.from({ length: 2 * cache.selfRows * width }, (_, at) => at + i),
      );
    const [from, to] = [[0, 3], [cache.selfRows, cache.selfRows + 3]].map((rows) => device.upload('rows', 'u32', [2], Uint32Array.from(rows))); // prettier-ignore
    const rec = device.record('test');
    copyCacheRows(rec, { cache, from: from!, to: to!, rows: 2 });
    rec.submit();
    for (const [i, tensor] of cache.self.entries()) {
      const values = (await device.read(tensor)) as Float32Array;
      for (const row of [0, 3]) expect(rowsOf(values, cache.selfRows + row)).toEqual(rowsOf(values, row));
      for (const row of [0, 3, cache.selfRows + 1, cache.selfRows + 4]) expect(values[row * width]).toBe(row * width + i);
    }
  });

  test('detects the language and the probability of no speech after the first token', async () => {
    const runner = new WhisperRunner(device, model, { maxRunning: 1 });
    await runner.warmUp();
    runner.encode(0, audio);
    const noSpeech = 185;
    const row: StepRow = { slot: 0, position: 0, token: model.tokens.start, sample: { mask: 'languages', probe: noSpeech } };
    const [[found] = []] = await runner.step([row]).tokens();
    expect(found!.token).toBe(tokens.language);
    expect(found!.logprob).toBeCloseTo(tokens.no_speech_logprob, 4);
  });

  test('chooses the same tokens, to the last bit of their probabilities, alone and beside others', async () => {
    const runner = new WhisperRunner(device, model, { maxRunning: 4 });
    await runner.warmUp();
    await runner.makeRoom(3);
    const noise = Float32Array.from({ length: 24000 }, (_, i) => 0.1 * Math.sin(i * i * 1e-5));
    const prompt = transcriptPrompt(model.tokens, 'en', false);
    runner.encode(2, audio);
    const [alone] = await greedy(runner, [{ slot: 2, prompt }], 24);
    [0, 1, 3].forEach((slot) => runner.encode(slot, noise.subarray(slot * 1000)));
    runner.encode(2, audio);
    const jobs = [0, 1, 2, 3].map((slot) => ({ slot, prompt: slot === 1 ? [...prompt, 5, 6, 7] : prompt, timestamps: slot === 3 }));
    const together = await greedy(runner, jobs, 24);
    expect(together[2]).toEqual(alone);
    expect(ids(together[0]!)).not.toEqual(ids(alone!));
  });

  test('a step creates no GPU object, submits once and reads 8 bytes a sequence', async () => {
    const runner = new WhisperRunner(device, model, { maxRunning: 2 });
    await runner.warmUp();
    await runner.makeRoom(1);
    const prompt = transcriptPrompt(model.tokens, 'en', false);
    const jobs = [0, 1].map((slot) => ({ slot, prompt }));
    jobs.forEach(({ slot }) => runner.encode(slot, audio));
    await greedy(runner, jobs, 3);
    const before = { ...device.stats };
    await greedy(runner, jobs, 10);
    const { buffers, bindGroups, pipelines, submits, bytesRead } = device.stats;
    expect({ buffers, bindGroups, pipelines }).toEqual({
      buffers: before.buffers,
      bindGroups: before.bindGroups,
      pipelines: before.pipelines,
    });
    expect(submits - before.submits).toBe(10);
    expect(bytesRead - before.bytesRead).toBe(10 * 2 * 8);
  });
});

describe('the bundled checkpoint', () => {
  const fixtures = 'test/fixtures/parley-transcribe';
  const wanted = json<{ prompt_ids: number[]; greedy_ids: number[]; timestamp_prompt_ids: number[]; greedy_ids_timestamps: number[] }>(
    `${fixtures}/golden.json`,
  );
  const audio = wavToMono(parseWav(readFileSync(path(`${fixtures}/clip.wav`))));
  let device: Device;
  let model: WhisperModel;
  let golden: Checkpoint;
  beforeAll(async () => {
    ({ device, model, golden } = await open('models/parley-transcribe', fixtures));
  });
  afterAll(async () => {
    await golden.close();
    device.close();
  });

  test('agrees with PyTorch on features, encoder output and the logits of the prompt', async () => {
    const { config } = model;
    const workspace = createEncoderWorkspace(device, config);
    device.write(workspace.samples, melInput(config.mel, audio, config.frames * config.mel.hop));
    const encoded = await compute(device, workspace.normed, (rec) => encodeAudio(rec, { ...model, workspace, frames: config.frames }));
    const features = (await device.read(workspace.features)) as Float32Array;
    expectClose('features', features, transpose(await golden.read('input_features'), config.mel.mels, config.frames), 1e-6);
    expectClose('encoder', encoded, await golden.read('encoder_out'), 1e-6);
    expectClose('logits', await forcedLogits(device, model, audio, wanted.prompt_ids), await golden.read('prompt_logits'), 1e-6);
  });

  test('transcribes its clip to the same tokens, with and without timestamps', async () => {
    const runner = new WhisperRunner(device, model, { maxRunning: 2 });
    await runner.warmUp();
    await runner.makeRoom(1);
    expect(transcriptPrompt(model.tokens, 'en', false)).toEqual(wanted.prompt_ids);
    expect(transcriptPrompt(model.tokens, 'en', true)).toEqual(wanted.timestamp_prompt_ids);
    [0, 1].forEach((slot) => runner.encode(slot, audio));
    const jobs = [{ slot: 0, prompt: wanted.prompt_ids }, { slot: 1, prompt: wanted.timestamp_prompt_ids, timestamps: true }]; // prettier-ignore
    const [text, timed] = await greedy(runner, jobs, wanted.greedy_ids_timestamps.length + 1);
    const { eos } = model.tokens;
    expect(ids(text!).slice(0, wanted.greedy_ids.length + 1)).toEqual([...wanted.greedy_ids, eos]);
    expect(ids(timed!)).toEqual([...wanted.greedy_ids_timestamps, eos]);
  });

  test.each([
    ['half precision', floatStorage('f16'), 0.6, 1e-6],
    ['bytes', { ...floatStorage('f16'), quantization: 'q8_0' }, 0.4, 1e-4],
  ] as const)('weights in %s change the encoder output by rounding only', async (_, storage, share, error) => {
    const half = await loadWhisperModel(device, await openModelFolder(device.platform, path('models/parley-transcribe')), storage);
    const { config } = half;
    const workspace = createEncoderWorkspace(device, config);
    device.write(workspace.samples, melInput(config.mel, audio, config.frames * config.mel.hop));
    const encoded = await compute(device, workspace.normed, (rec) => encodeAudio(rec, { ...half, workspace, frames: config.frames }));
    expect(half.weightBytes).toBeLessThan(share * model.weightBytes);
    expect(nmse(encoded, await golden.read('encoder_out'))).toBeLessThan(error);
  });
});

test('int8 of CTranslate2 stays int8, and its tokens are those of the values that it stands for', async () => {
  const device = await testDevice();
  const folder = path('test/fixtures/ctranslate2-tiny-random/int8_wide');
  const load = async (keepBlocks: boolean): Promise<WhisperModel> =>
    loadWhisperModel(device, await openModelFolder(device.platform, folder), { ...floatStorage('f32'), keepBlocks });
  const [kept, unpacked] = [await load(true), await load(false)];
  expect(kept.weightBytes).toBeLessThan(unpacked.weightBytes * 0.8);
  const rng = createRng(11);
  const samples = Float32Array.from({ length: 24000 }, (_, i) => 0.3 * Math.sin(i / 7) * Math.sin(i / 900) + 0.02 * rng.normal());
  const { vocabulary } = kept.config;
  const tokens = [kept.tokens.start, ...Array.from({ length: 30 }, () => rng.integer(vocabulary))];
  const [found, wanted] = [await forcedLogits(device, kept, samples, tokens), await forcedLogits(device, unpacked, samples, tokens)];
  // Products with the inverse of a scale instead of quotients by it.
  expect(nmse(found, wanted)).toBeLessThan(1e-10);
  const best = (logits: Float32Array): number[] =>
    tokens.map((_, row) => argmax(logits.subarray(row * vocabulary, (row + 1) * vocabulary)));
  expect(best(found)).toEqual(best(wanted));
  expect(new Set(best(found)).size).toBeGreaterThan(5);
  expect(device.errors).toEqual([]);
  device.close();
});
