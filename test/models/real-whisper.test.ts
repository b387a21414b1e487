/**
 * Published Whisper weights (../support/weights.ts) in CTranslate2's format against transformers on the same weights, on two recordings of LJ Speech or on
 * what PARLEY_REAL_CLIPS names: a folder that test/tools/real_transcripts.py wrote (WAV files, and what transformers heard for each model).
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { resolveConfig } from '../../engine/config.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Transcriber } from '../../engine/tasks/transcriber.ts';
import { testDevice } from '../support/device.ts';
import { publishedWeights } from '../support/weights.ts';

const CLIPS = process.env['PARLEY_REAL_CLIPS'] ?? fileURLToPath(new URL('../fixtures/lj-speech/', import.meta.url));

for (const name of ['whisper-tiny.en', 'whisper-base']) {
  const { path, absent } = publishedWeights(name, 'model.bin');
  const missing = absent ?? (existsSync(join(CLIPS, `${name}.json`)) ? undefined : `PARLEY_REAL_CLIPS has no ${name}.json`);
  test.skipIf(missing !== undefined)(
    `${name} writes what transformers writes${missing ? ` (skipped: ${missing})` : ''}`,
    async () => {
      const golden = JSON.parse(readFileSync(join(CLIPS, `${name}.json`), 'utf8')) as Record<string, { heard: string; spoken: string }>;
      const device = await testDevice();
      const transcriber = await Transcriber.load(device, createNodePlatform(), { path }, resolveConfig({}));
      const different: string[] = [];
      for (const [file, { heard }] of Object.entries(golden)) {
        const samples = wavToMono(parseWav(new Uint8Array(readFileSync(join(CLIPS, file)))));
        let text = '';
        for await (const event of transcriber.transcribe({ samples, language: 'en' }, new AbortController().signal)) {
          if (event.type === 'finish') text = event.text.trim();
        }
        if (text !== heard) different.push(`${file}: ${text} | ${heard}`);
      }
      await transcriber.close();
      device.close();
      console.log(`${name}: ${Object.keys(golden).length - different.length} of ${Object.keys(golden).length} equal`);
      expect(different).toEqual([]);
    },
    3_000_000,
  );
}
