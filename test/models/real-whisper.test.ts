/**
 * Published Whisper weights in CTranslate2's format against transformers on the same weights: PARLEY_REAL_MODELS is a folder with whisper-tiny.en and
 * whisper-base, PARLEY_REAL_CLIPS what test/tools/real_transcripts.py wrote (WAV files and a list of what transformers heard for each model).
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { resolveConfig } from '../../engine/config.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Transcriber } from '../../engine/tasks/transcriber.ts';
import { testDevice } from '../support/device.ts';

const MODELS = process.env['PARLEY_REAL_MODELS'] ?? '';
const CLIPS = process.env['PARLEY_REAL_CLIPS'] ?? '';

/** Published weights are never committed. */
const whyNot = (name: string): string | undefined => {
  if (!existsSync(join(MODELS, name, 'model.bin'))) return `PARLEY_REAL_MODELS has no ${name}/model.bin`;
  return existsSync(join(CLIPS, `${name}.json`)) ? undefined : `PARLEY_REAL_CLIPS has no ${name}.json`;
};

for (const name of ['whisper-tiny.en', 'whisper-base']) {
  const missing = whyNot(name);
  test.skipIf(missing !== undefined)(
    `${name} writes what transformers writes${missing ? ` (skipped: ${missing})` : ''}`,
    async () => {
      const golden = JSON.parse(readFileSync(join(CLIPS, `${name}.json`), 'utf8')) as Record<string, { heard: string; spoken: string }>;
      const device = await testDevice();
      const transcriber = await Transcriber.load(device, createNodePlatform(), { path: join(MODELS, name) }, resolveConfig({}));
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
