/**
 * A reading of minutes, which is heard in pieces, with published Whisper weights (../support/weights.ts) against transformers on the same weights: no word is
 * lost or doubled where pieces meet. PARLEY_REAL_CLIPS is a folder that test/tools/real_reading.py wrote.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { resolveConfig } from '../../engine/config.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Transcriber } from '../../engine/tasks/transcriber.ts';
import { testDevice } from '../support/device.ts';
import { publishedWeights } from '../support/weights.ts';
import { alignWords } from '../support/word-alignment.ts';
import { wordErrorRate } from '../support/word-error-rate.ts';

const CLIPS = process.env['PARLEY_REAL_CLIPS'] ?? '';

for (const name of ['whisper-tiny.en', 'whisper-base']) {
  const { path, absent } = publishedWeights(name, 'model.bin');
  const missing = absent ?? (existsSync(join(CLIPS, `${name}.reading.json`)) ? undefined : `PARLEY_REAL_CLIPS has no ${name}.reading.json`);
  test.skipIf(missing !== undefined)(
    `${name} loses and doubles no word of a long reading${missing ? ` (skipped: ${missing})` : ''}`,
    async () => {
      const { said, heard } = JSON.parse(readFileSync(join(CLIPS, `${name}.reading.json`), 'utf8')) as Record<'said' | 'heard', string>;
      const wanted = alignWords(said, heard);
      const samples = wavToMono(parseWav(readFileSync(join(CLIPS, 'reading.wav'))));
      const device = await testDevice();
      const transcriber = await Transcriber.load(device, createNodePlatform(), { path }, resolveConfig({}));
      console.log(`${name}: transformers has ${percent(wordErrorRate(said, heard))} of ${wanted.words.length} words wrong`);
      for (const timestamps of [undefined, 'segment'] as const) {
        const request = { samples, language: 'en', ...(timestamps && { timestamps }) };
        let text = '';
        for await (const event of transcriber.transcribe(request, new AbortController().signal)) {
          if (event.type === 'finish') text = event.text;
        }
        const found = alignWords(said, text);
        const lost = found.words.filter(({ heard: word }, i) => word === undefined && wanted.words[i]!.heard === wanted.words[i]!.said);
        const doubled = found.doubled.filter((word) => !wanted.doubled.includes(word));
        console.log(`${name}, ${timestamps ? 'with' : 'without'} times: ${percent(wordErrorRate(said, text))} wrong`);
        expect({ lost: lost.map((word) => word.said), doubled }).toEqual({ lost: [], doubled: [] });
      }
      await transcriber.close();
      device.close();
    },
    3_000_000,
  );
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
