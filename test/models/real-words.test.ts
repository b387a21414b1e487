/**
 * Times of words and segments with published Whisper weights (../support/weights.ts) against transformers on the same weights (test/tools/dump_whisper_words.py),
 * on two recordings of LJ Speech or on what PARLEY_REAL_CLIPS names: a folder of WAV files that the script was run on. Longer ones are cut alike on both sides
 * (test/tools/whisper-windows.ts). With the bundled weights too where the folder has what they give; greedily, and in windows that are padded, as transformers has them.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { TranscriptSegment } from '../../engine/api.ts';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { floatStorage, resolveConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { loadWhisperModel } from '../../engine/models/whisper/load.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { WhisperRunner } from '../../engine/runner/whisper-runner.ts';
import { Transcriber } from '../../engine/tasks/transcriber.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { testDevice } from '../support/device.ts';
import { publishedWeights } from '../support/weights.ts';
import { wordsApart } from '../support/word-times.ts';
import type { GoldenTimes } from '../support/word-times.ts';

const CLIPS = process.env['PARLEY_REAL_CLIPS'] ?? fileURLToPath(new URL('../fixtures/lj-speech/', import.meta.url));

const BUNDLED = 'parley-transcribe';

async function openBundled(device: Device, path: string): Promise<Transcriber> {
  const folder = await openModelFolder(device.platform, path);
  const loaded = await loadWhisperModel(device, folder, floatStorage('f16'));
  const { frames, mel } = loaded.config;
  const windows = { samples: frames * mel.hop, frames, padding: undefined };
  const runner = new WhisperRunner(
    device,
    { ...loaded, config: { ...loaded.config, windows }, tokens: { ...loaded.tokens, beams: 1 } },
    { maxRunning: 2 },
  );
  await runner.warmUp();
  const info = { id: BUNDLED, task: 'transcription', architecture: 'whisper', parameters: 1, weightBytes: 1 } as const;
  return new Transcriber(info, { runner, tokenizer: await Tokenizer.load(folder), platform: device.platform, maxQueued: 4 });
}

for (const name of ['whisper-tiny.en', 'whisper-base', BUNDLED]) {
  const bundled = { path: fileURLToPath(new URL(`../../models/${BUNDLED}`, import.meta.url)), absent: undefined };
  const { path, absent } = name === BUNDLED ? bundled : publishedWeights(name, 'model.bin');
  const missing = absent ?? (existsSync(join(CLIPS, `${name}.words.json`)) ? undefined : `PARLEY_REAL_CLIPS has no ${name}.words.json`);
  test.skipIf(missing !== undefined)(
    `${name} times words within 40 ms and segments within 20 ms of transformers${missing ? ` (skipped: ${missing})` : ''}`,
    async () => {
      const golden = JSON.parse(readFileSync(join(CLIPS, `${name}.words.json`), 'utf8')) as Record<string, GoldenTimes>;
      const device = await testDevice();
      const transcriber =
        name === BUNDLED
          ? await openBundled(device, path)
          : await Transcriber.load(device, createNodePlatform(), { path }, resolveConfig({}));
      for (const [file, wanted] of Object.entries(golden)) {
        const samples = wavToMono(parseWav(new Uint8Array(readFileSync(join(CLIPS, file)))));
        const segments: TranscriptSegment[] = [];
        for await (const event of transcriber.transcribe({ samples, language: 'en', timestamps: 'word' }, new AbortController().signal)) {
          if (event.type === 'segment') segments.push(event.segment);
        }
        const { texts, ...apart } = wordsApart(segments, wanted);
        console.log(`${name} ${file}: ${wanted.words.length} words, ${wanted.segments.length} segments, ${JSON.stringify(apart)}`);
        expect(texts).toBe('equal');
        expect(apart.words).toBeLessThanOrEqual(0.04);
        expect(apart.segments).toBeLessThanOrEqual(0.02);
      }
      await transcriber.close();
      device.close();
    },
    3_000_000,
  );
}
