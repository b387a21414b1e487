/**
 * Published Kokoro as ONNX in int8 (PARLEY_WEIGHTS/kokoro: the export and voices/) against the reference package on the same weights, by what
 * test/tools/real_speech.py wrote: the frames of 12 sentences, and two of them spoken. With the same noise both compute one waveform, and what is left is rounding.
 * With noise of its own the package is as far from itself as its `package with other noise` says, 0.065 to 0.093 nepers, and no closer to Parley.
 * PARLEY_REAL_CLIPS is a folder with the script's kokoro.safetensors: then all 12 are spoken.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { floatStorage } from '../../engine/config.ts';
import { writeText } from '../../engine/models/kokoro/batch.ts';
import { parseKokoroConfig } from '../../engine/models/kokoro/config.ts';
import { createKokoroWorkspace, forwardText, loadKokoro } from '../../engine/models/kokoro/model.ts';
import { loadVoices, voiceStyle } from '../../engine/models/kokoro/voices.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { KokoroRunner } from '../../engine/runner/kokoro-runner.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { testDevice } from '../support/device.ts';
import { bandsDistance, logBands } from '../support/log-mel.ts';

const MODEL = join(process.env['PARLEY_WEIGHTS'] ?? '', 'kokoro');
const CLIPS = process.env['PARLEY_REAL_CLIPS'] ?? '';
const FIXTURE = fileURLToPath(new URL('../fixtures/kokoro-real/', import.meta.url));
/** Published weights are never committed. */
const absent = existsSync(join(MODEL, 'voices')) ? undefined : 'kokoro/voices is not in PARLEY_WEIGHTS';
/** Nepers. */
const NEAR = 0.06;
/** More than the longest of the sentences has. */
const FRAMES = 256;

interface Sentence {
  readonly voice: string;
  readonly text: string;
  readonly ids: readonly number[];
  readonly frames: readonly number[];
}
const { seed, spoken } = JSON.parse(readFileSync(join(FIXTURE, 'golden.json'), 'utf8')) as { seed: number; spoken: readonly Sentence[] };

/** The band energies of a sentence that the package spoke with the seed's noise. */
async function goldenBands(i: number, fixture: Checkpoint, clips: Checkpoint | undefined, rate: number): Promise<ArrayLike<number>> {
  return clips ? logBands(await clips.read(`${i}.audio`), rate) : fixture.read(`${i}.bands`);
}

test.skipIf(absent !== undefined)(
  `published Kokoro speaks what the package speaks${absent ? ` (skipped: ${absent})` : ''}`,
  async () => {
    const platform = createNodePlatform();
    const fixture = await openSafetensors(platform, FIXTURE, 'golden.safetensors');
    const clips = existsSync(join(CLIPS, 'kokoro.safetensors')) ? await openSafetensors(platform, CLIPS, 'kokoro.safetensors') : undefined;
    const device = await testDevice();
    const folder = await openModelFolder(platform, MODEL);
    const config = parseKokoroConfig(await folder.json('config.json'));
    const weights = await withWeights(folder, (checkpoint) => loadKokoro(device, checkpoint, config, floatStorage('f16')));
    const voices = await withWeights(folder, (checkpoint) => loadVoices(checkpoint, config.styleDim), 'voices.safetensors');
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
