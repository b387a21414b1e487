/**
 * Kokoro against the reference package, stage by stage: a tiny random checkpoint (test/tools/dump_kokoro.py) in f32, and the bundled one with
 * the fixture that came with it.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { floatStorage } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';
import { writeFrames, writeText } from '../../engine/models/kokoro/batch.ts';
import type { FrameBatch } from '../../engine/models/kokoro/batch.ts';
import { parseKokoroConfig } from '../../engine/models/kokoro/config.ts';
import type { KokoroConfig } from '../../engine/models/kokoro/config.ts';
import {
  createKokoroWorkspace, forwardDecoder, forwardHead, forwardSource, forwardStage, forwardText, loadKokoro,
} from '../../engine/models/kokoro/model.ts'; // prettier-ignore
import type { KokoroWeights, KokoroWorkspace } from '../../engine/models/kokoro/model.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { readJsonFile } from '../../engine/platform/json-file.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { expectClose, nmse } from '../support/compare.ts';
import { testDevice } from '../support/device.ts';
import { logMelDistance } from '../support/log-mel.ts';
import { wordsOf } from '../support/words-of.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const platform = createNodePlatform();

/** A golden tensor as [rows, channels]: PyTorch keeps [1, channels, rows]. */
async function timeMajor(golden: Checkpoint, name: string): Promise<Float32Array> {
  const [, channels = 0, rows = 0] = golden.tensor(name)!.shape;
  const data = await golden.read(name);
  const out = new Float32Array(data.length);
  for (let c = 0; c < channels; c++) for (let r = 0; r < rows; r++) out[r * channels + c] = data[c * rows + r]!;
  return out;
}

/** The first `rows` x `columns` of a device tensor. */
async function slice(device: Device, tensor: Tensor, rows: number, columns: number): Promise<Float32Array> {
  const stride = tensor.shape[1] ?? 1;
  const data = await device.read(tensor);
  const out = new Float32Array(rows * columns);
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) out[r * columns + c] = data[r * stride + c]!;
  return out;
}

interface Model {
  readonly config: KokoroConfig;
  readonly weights: KokoroWeights;
  readonly ws: KokoroWorkspace;
  readonly golden: Checkpoint;
}

async function load(device: Device, folder: string, fixture: string): Promise<Model> {
  const model = await openModelFolder(platform, join(ROOT, folder));
  const config = parseKokoroConfig(await model.json('config.json'));
  const weights = await withWeights(model, (checkpoint) => loadKokoro(device, checkpoint, config, floatStorage('f32')));
  const golden = await openSafetensors(platform, join(ROOT, fixture), 'golden.safetensors');
  return { config, weights, ws: createKokoroWorkspace(device, config, weights, 64, 128), golden };
}

async function run(device: Device, label: string, forward: (rec: Recorder) => void): Promise<void> {
  const rec = device.record(label);
  forward(rec);
  await rec.submit().finished();
}

/** Of the golden audio. */
const NOISE = { seed: 1234, firstSample: 0 };

/** Writes ids and style, runs the text side and stretches by the golden durations, which must be ours exactly. */
async function runText(
  device: Device,
  { config, weights, ws, golden }: Model,
): Promise<{ tokens: number; frames: number; batch: FrameBatch }> {
  const ids = Uint32Array.from(await golden.readIds('input_ids'));
  const style = await golden.read('style');
  const sentence = { ids, decoder: style.slice(0, config.styleDim), prosody: style.slice(config.styleDim) };
  const text = writeText(device, config, ws, [sentence]);
  await run(device, 'text', (rec) => forwardText(rec, weights, config, ws, text));
  const durations = await slice(device, ws.prosody.durations, ids.length, 1);
  const rounded = durations.map((d) => Math.max(1, Math.round(d)));
  expect([...rounded]).toEqual([...(await golden.readIds('pred_dur'))]);
  const index = Uint32Array.from([...rounded].flatMap((count, token) => Array<number>(count).fill(token)));
  return { tokens: ids.length, frames: index.length, batch: writeFrames(device, ws.frameInput, text, 0, [{ index, ...NOISE }]) };
}

describe('a tiny random Kokoro agrees with the reference in f32', () => {
  let device: Device;
  let model: Model;
  let tokens = 0;
  let frames = 0;
  let batch: FrameBatch;
  beforeAll(async () => {
    device = await testDevice();
    const folder = 'test/fixtures/kokoro-tiny-random';
    model = await load(device, folder, folder);
    ({ tokens, frames, batch } = await runText(device, model));
  });
  afterAll(async () => {
    await model.golden.close();
    device.close();
  });

  async function close(
    name: string,
    tensor: Tensor,
    rows: number,
    columns: number,
    expected: Float32Array,
    tolerance = 1e-6,
  ): Promise<void> {
    expectClose(name, await slice(device, tensor, rows, columns), expected, tolerance);
  }

  test('text side: bert, phoneme features, duration encoder, durations, text encoder', async () => {
    const { config, ws, golden } = model;
    const { hidden } = config;
    await close('bert', ws.bert.hidden, tokens, config.bert.hidden, await golden.read('bert'));
    await close('d_en', ws.phonemes, tokens, hidden, await golden.read('d_en'));
    const d = await golden.read('d');
    const width = hidden + config.styleDim;
    const withoutStyle = Float32Array.from({ length: tokens * hidden }, (_, i) => d[Math.floor(i / hidden) * width + (i % hidden)]!);
    await close('d', ws.prosody.encoded, tokens, hidden, withoutStyle);
    await close('duration', ws.prosody.durations, tokens, 1, await golden.read('duration'));
    await close('t_en', ws.text.encoded, tokens, hidden, await timeMajor(golden, 't_en'));
  });

  test('decoder: F0, energy, stretched features, blocks', async () => {
    const { config, weights, ws, golden } = model;
    await run(device, 'decoder', (rec) => forwardDecoder(rec, weights, config, ws, batch));
    await close('F0', ws.curves.f0, 2 * frames, 1, await golden.read('F0'));
    await close('N', ws.curves.energy, 2 * frames, 1, await golden.read('N'));
    await close('asr', ws.decoder.input, frames, config.hidden, await timeMajor(golden, 'asr'));
    await close('decode_1', ws.decoder.joined[0], frames, config.decoderDim, await timeMajor(golden, 'decode_1'));
    await close('decode_2', ws.decoder.joined[1], frames, config.decoderDim, await timeMajor(golden, 'decode_2'));
    await close('decoder_out', ws.decoder.out, 2 * frames, config.generator.channels, await timeMajor(golden, 'decoder_out'));
  });

  test('source: signal and spectrum without noise', async () => {
    const { config, weights, ws, golden } = model;
    await run(device, 'source', (rec) => forwardSource(rec, weights, config, ws, batch, 0));
    await close('har_source', ws.generator.source, 2 * frames * config.samplesPerF0Frame, 1, await golden.read('har_source'));
    const columns = config.generator.nFft + 2;
    const rows = golden.tensor('har')!.shape.at(-1)!;
    const complex = (polar: Float32Array): Float32Array => polar.map((value, i) => toComplexPart(polar, value, i, columns));
    const ours = complex(await slice(device, ws.generator.harmonics, rows, columns));
    expectClose('har', ours, complex(await timeMajor(golden, 'har')), 1e-6);
  });

  test('vocoder: stages from the reference source', async () => {
    const { config, weights, ws, golden } = model;
    const { generator } = config;
    // An angle near pi comes out as -pi in another summation order, so the stages get the reference's own angles.
    const har = await timeMajor(golden, 'har');
    const width = ws.generator.harmonics.shape[1]!;
    const columns = generator.nFft + 2;
    const padded = new Float32Array((har.length / columns) * width);
    for (let i = 0; i < har.length; i++) padded[Math.floor(i / columns) * width + (i % columns)] = har[i]!;
    device.write(ws.generator.harmonics, padded);
    let rows = 2 * frames;
    for (const [i, rate] of generator.upsampleRates.entries()) {
      const last = i === generator.upsampleRates.length - 1;
      rows = rows * rate + (last ? 1 : 0);
      await run(device, `stage ${i}`, (rec) => forwardStage(rec, weights, ws, i, batch));
      const expected = await timeMajor(golden, last ? 'conv_post_in' : `ups_${i + 1}_in`);
      const words = await wordsOf(device, ws.generator.normed);
      const actual = new Float32Array(words.buffer).slice(0, rows * (generator.channels / 2 ** (i + 1)));
      expectClose(`stage ${i}`, actual, expected, 1e-6);
    }
    const samples = 2 * frames * config.samplesPerF0Frame;
    await run(device, 'head', (rec) => forwardHead(rec, weights, ws, batch));
    await close('conv_post', ws.generator.post, rows, columns, await timeMajor(golden, 'conv_post'));
    expectClose('audio', (await device.read(ws.generator.audio)).slice(0, samples), await golden.read('audio'), 1e-6);
  });

  test('the waveform without noise from our own source', async () => {
    const { config, weights, ws, golden } = model;
    const samples = 2 * frames * config.samplesPerF0Frame;
    await run(device, 'vocoder', (rec) => {
      forwardSource(rec, weights, config, ws, batch, 0);
      for (let i = 0; i < config.generator.upsampleRates.length; i++) forwardStage(rec, weights, ws, i, batch);
      forwardHead(rec, weights, ws, batch);
    });
    const audio = (await device.read(ws.generator.audio)).slice(0, samples);
    const expected = await golden.read('audio');
    expectClose('audio', audio, expected, 1e-3);
    expect(logMelDistance(audio, expected, config.sampleRate)).toBeLessThanOrEqual(0.02);
  });
});

/** Element `i` of the complex numbers whose magnitudes and angles fill the two halves of each row. */
function toComplexPart(polar: Float32Array, value: number, i: number, columns: number): number {
  const bins = columns / 2;
  return i % columns < bins ? value * Math.cos(polar[i + bins]!) : polar[i - bins]! * Math.sin(value);
}

test('the configuration of Kokoro-82M is understood', async () => {
  const path = join(ROOT, '../shared/training/speech/kokoro82m_config.json');
  if (!(await platform.exists(path))) return console.log('skipped: ../shared is not here');
  const config = parseKokoroConfig(await readJsonFile(platform, path));
  expect(config).toMatchObject({ hidden: 512, styleDim: 128, decoderDim: 1024, asrResDim: 64, samplesPerF0Frame: 300, sampleRate: 24000 });
  expect(config.bert).toEqual({ hidden: 768, heads: 12, intermediate: 2048, positions: 512, layers: 12, embedding: 128 });
  expect(() => parseKokoroConfig({ vocab: {} })).toThrowError(/plbert/);
});

describe('the bundled speech checkpoint agrees with its fixture', () => {
  let device: Device;
  let model: Model;
  let frames = 0;
  let batch: FrameBatch;
  beforeAll(async () => {
    device = await testDevice();
    model = await load(device, 'models/parley-speech', 'test/fixtures/parley-speech');
    ({ frames, batch } = await runText(device, model));
  }, 60000);
  afterAll(async () => {
    await model.golden.close();
    device.close();
  });

  async function vocode(noiseScale: number): Promise<Float32Array> {
    const { config, weights, ws } = model;
    const samples = 2 * frames * config.samplesPerF0Frame;
    await run(device, 'vocoder', (rec) => {
      forwardSource(rec, weights, config, ws, batch, noiseScale);
      for (let i = 0; i < config.generator.upsampleRates.length; i++) forwardStage(rec, weights, ws, i, batch);
      forwardHead(rec, weights, ws, batch);
    });
    return (await device.read(ws.generator.audio)).slice(0, samples) as Float32Array;
  }

  test('durations, F0, energy and the decoder', async () => {
    const { config, weights, ws, golden } = model;
    await run(device, 'decoder', (rec) => forwardDecoder(rec, weights, config, ws, batch));
    expectClose('F0', await slice(device, ws.curves.f0, 2 * frames, 1), await golden.read('F0'), 1e-6);
    expectClose('N', await slice(device, ws.curves.energy, 2 * frames, 1), await golden.read('N'), 1e-6);
    const decoded = await slice(device, ws.decoder.out, 2 * frames, config.generator.channels);
    expectClose('decoder_out', decoded, await timeMajor(golden, 'decoder_out'), 1e-6);
  });

  test('the waveform without noise and with the seeded noise', async () => {
    const silent = await vocode(0);
    const expected = await model.golden.read('audio_zero_noise');
    expectClose('audio without noise', silent, expected, 1e-3);
    expect(logMelDistance(silent, expected, model.config.sampleRate)).toBeLessThanOrEqual(0.02);
    const seeded = await vocode(1);
    expectClose(
      'source with noise',
      await slice(device, model.ws.generator.source, seeded.length, 1),
      await model.golden.read('har_source'),
      1e-6,
    );
    expectClose('audio with noise', seeded, await model.golden.read('audio'), 1e-3);
    expect(nmse(silent, seeded)).toBeGreaterThan(1e-6);
  });
});
