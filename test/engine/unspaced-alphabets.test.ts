/** The phonemes of Mandarin and Japanese are symbols of published Kokoro, which would drop others without a word. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseKokoroConfig } from '../../engine/models/kokoro/config.ts';
import { openJapanese } from '../../engine/platform/lindera.ts';
import { createJapanese } from '../../engine/text/japanese.ts';
import { loadMandarin } from '../../engine/text/mandarin.ts';
import { KOKORO_82M } from '../../engine/weights/kokoro/kokoro-82m.ts';

const { vocab } = parseKokoroConfig(KOKORO_82M);

test.each([
  ['zh', 300, await loadMandarin()],
  ['ja', 217, createJapanese(await openJapanese())],
] as const)('%s: %i sentences have no other symbols', (language, count, read) => {
  const golden = readFileSync(new URL(`../fixtures/misaki-${language}.json`, import.meta.url), 'utf8');
  const { sentences } = JSON.parse(golden) as { readonly sentences: readonly { readonly text: string }[] };
  expect(sentences).toHaveLength(count);
  for (const { text } of sentences) {
    const phonemes = read(text).flatMap((span) => ('latin' in span ? [] : [...span.phonemes]));
    expect(
      phonemes.filter((symbol) => !vocab.has(symbol)),
      text,
    ).toEqual([]);
  }
});
