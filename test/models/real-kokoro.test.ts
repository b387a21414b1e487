/**
 * Published Kokoro as ONNX in int8 (PARLEY_WEIGHTS/kokoro: the export and voices/) against the reference package on the same weights, by what
 * test/tools/real_speech.py wrote: the frames of 12 sentences, and two of them spoken. With the same noise both compute one waveform, and what is left is rounding.
 * With noise of its own the package is as far from itself as its `package with other noise` says, 0.065 to 0.093 nepers, and no closer to Parley.
 * Four sentences at speeds from 0.75 to 1.4 are compared number by number: pitch and energy by frame, and every 61st sample.
 * PARLEY_REAL_CLIPS is a folder with the script's kokoro.safetensors: then all 12 are spoken.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { floatStorage } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';
import { writeFrames, writeText } from '../../engine/models/kokoro/batch.ts';
import { parseKokoroConfig } from '../../engine/models/kokoro/config.ts';
import type { KokoroConfig } from '../../engine/models/kokoro/config.ts';
import { createKokoroWorkspace, forwardDecoder, forwardText, loadKokoro } from '../../engine/models/kokoro/model.ts';
import type { KokoroWeights } from '../../engine/models/kokoro/model.ts';
import { loadVoices, voiceStyle } from '../../engine/models/kokoro/voices.ts';
import type { Voice } from '../../engine/models/kokoro/voices.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { KokoroRunner } from '../../engine/runner/kokoro-runner.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { nmse } from '../support/compare.ts';
import { testDevice } from '../support/device.ts';
import { bandsDistance, logBands } from '../support/log-mel.ts';

const MODEL = join(process.env['PARLEY_WEIGHTS'] ?? '', 'kokoro');
const CLIPS = process.env['PARLEY_REAL_CLIPS'] ?? '';
const FIXTURE = fileURLToPath(new URL('../fixtures/kokoro-real/', import.meta.url));
/** Published weights are never committed. */
const absent = existsSync(join(MODEL, 'voices')) ? undefined : 'kokoro/voices is not in PARLEY_WEIGHTS';
/** Nepers. */
const NEAR = 0.06;
/** NMSE of what is computed in f32, and of samples that weights in f16 make, whose phases are sums of all pitch before. */
const [CURVES, SAMPLES] = [1e-9, 1e-4];
/** More than the longest of the sentences has. */
const FRAMES = 256;

interface Sentence {
  readonly voice: string;
  readonly text: string;
  readonly ids: readonly number[];
  readonly frames: readonly number[];
}
/** One of them at a speed; the fixture has its curves and every so many of its samples. */
interface Close {
  readonly sentence: number;
  readonly speed: number;
  readonly frames: readonly number[];
}
const { seed, stride, spoken, close } = JSON.parse(readFileSync(join(FIXTURE, 'golden.json'), 'utf8')) as {
  seed: number;
  stride: number;
  spoken: readonly Sentence[];
  close: readonly Close[];
};

interface Model {
  readonly device: Device;
  readonly config: KokoroConfig;
  readonly weights: KokoroWeights;
  readonly voices: ReadonlyMap<string, Voice>;
  readonly fixture: Checkpoint;
}

/** Weights in f16, but for what pitch and durations come of. */
async function published(): Promise<Model> {
  const platform = createNodePlatform();
  const folder = await openModelFolder(platform, MODEL);
  const config = parseKokoroConfig(await folder.json('config.json'));
  const device = await testDevice();
  return {
    device,
    config,
    weights: await withWeights(folder, (checkpoint) => loadKokoro(device, checkpoint, config, floatStorage('f16'))),
    voices: await withWeights(folder, (checkpoint) => loadVoices(checkpoint, config.styleDim), 'voices.safetensors'),
    fixture: await openSafetensors(platform, FIXTURE, 'golden.safetensors'),
  };
}

/** The band energies of a sentence that the package spoke with the seed's noise. */
async function goldenBands(i: number, fixture: Checkpoint, clips: Checkpoint | undefined, rate: number): Promise<ArrayLike<number>> {
  return clips ? logBands(await clips.read(`${i}.audio`), rate) : fixture.read(`${i}.bands`);
}

test.skipIf(absent !== undefined)(
  `published Kokoro speaks what the package speaks${absent ? ` (skipped: ${absent})` : ''}`,
  async () => {
    const { device, config, weights, voices, fixture } = await published();
    const hasClips = existsSync(join(CLIPS, 'kokoro.safetensors'));
    const clips = hasClips ? await openSafetensors(createNodePlatform(), CLIPS, 'kokoro.safetensors') : undefined;
    const ws = createKokoroWorkspace(device, config, weights, config.bert.positions, FRAMES);

    for (const { voice, text, ids, frames } of spoken) {
      const sentence = { ids: Uint32Array.from([0, ...ids, 0]), ...voiceStyle(voices.get(voice)!, ids.length, config.styleDim) };
      const batch = writeText(device, config, ws, [sentence]);
      const rec = device.record('text');
      forwardText(rec, weights, config, ws, batch);
      await rec.submit().finished();
      const durations = (await device.read(ws.prosody.durations)).slice(0, ids.length + 2);
      expect([...durations.map((d) => Math.max(1, Math.round(d)))], text).toEqual(frames);
    }

    const runner = new KokoroRunner(device, config, weights, { maxTokens: config.bert.positions, maxFrames: FRAMES });
    const far: string[] = [];
    for (const [i, { voice, text, ids }] of spoken.entries()) {
      if (!clips && fixture.tensor(`${i}.bands`) === undefined) continue;
      const { samples } = (await runner.run(
        { ids, voice: voices.get(voice)!, speed: 1, seed, firstSample: 0 },
        new AbortController().signal,
      ))!;
      const bands = await goldenBands(i, fixture, clips, config.sampleRate);
      const distance = bandsDistance(logBands(samples, config.sampleRate), bands);
      console.log(`${voice}: ${distance.toFixed(4)} nepers: ${text}`);
      if (!(distance <= NEAR)) far.push(`${voice}: ${distance.toFixed(4)}`);
    }
    await clips?.close();
    await fixture.close();
    device.close();
    expect(far).toEqual([]);
  },
  3_000_000,
);

test.skipIf(absent !== undefined)(
  `published Kokoro has the frames, the curves and the samples of the package, at other speeds too${absent ? ` (skipped: ${absent})` : ''}`,
  async () => {
    const { device, config, weights, voices, fixture } = await published();
    const ws = createKokoroWorkspace(device, config, weights, config.bert.positions, FRAMES);
    const runner = new KokoroRunner(device, config, weights, { maxTokens: config.bert.positions, maxFrames: FRAMES });
    const errors: Record<string, number>[] = [];
    for (const [i, { sentence, speed, frames }] of close.entries()) {
      const { ids, voice } = spoken[sentence]!;
      const style = voiceStyle(voices.get(voice)!, ids.length, config.styleDim);
      const text = writeText(device, config, ws, [{ ids: Uint32Array.from([0, ...ids, 0]), ...style }]);
      const index = Uint32Array.from(frames.flatMap((count, token) => new Array<number>(count).fill(token)));
      const batch = writeFrames(device, ws.frameInput, text, 0, [{ index, seed, firstSample: 0 }]);
      const rec = device.record('curves');
      forwardText(rec, weights, config, ws, text);
      forwardDecoder(rec, weights, config, ws, batch);
      await rec.submit().finished();
      const durations = (await device.read(ws.prosody.durations)).slice(0, frames.length);
      expect(
        [...durations].map((duration) => Math.max(1, Math.round(duration / speed))),
        `${voice} at speed ${speed}`,
      ).toEqual(frames);
      const { samples, frames: total } = (await runner.run(
        { ids, voice: voices.get(voice)!, speed, seed, firstSample: 0 },
        new AbortController().signal,
      ))!;
      expect(total, `frames of ${voice} at speed ${speed}`).toBe(index.length);
      const strided = samples.filter((_, at) => at % stride === 0);
      errors.push({
        pitch: nmse(await firstColumn(device, ws.curves.f0, 2 * total), await fixture.read(`close.${i}.F0`)),
        energy: nmse(await firstColumn(device, ws.curves.energy, 2 * total), await fixture.read(`close.${i}.N`)),
        samples: nmse(strided, await fixture.read(`close.${i}.audio`)),
      });
      console.log(`${voice} at ${speed}: ${JSON.stringify(errors.at(-1))}`);
    }
    await fixture.close();
    device.close();
    for (const { pitch, energy, samples } of errors) {
      expect(Math.max(pitch!, energy!)).toBeLessThanOrEqual(CURVES);
      expect(samples).toBeLessThanOrEqual(SAMPLES);
    }
  },
  3_000_000,
);

/** The first number of each of `rows` rows. */
async function firstColumn(device: Device, tensor: Tensor, rows: number): Promise<Float32Array> {
  const width = tensor.shape[1] ?? 1;
  const data = await device.read(tensor);
  return Float32Array.from({ length: rows }, (_, row) => data[row * width]!);
}
