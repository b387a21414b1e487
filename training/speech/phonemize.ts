/**
 * Phonemes of texts as they are at inference: espeak-ng en-us, then the bundled model's phoneme_rules.json.
 *
 *   npx tsx training/speech/phonemize.ts IN.tsv OUT.tsv   (id<TAB>text -> id<TAB>text<TAB>tokens<TAB>raw IPA)
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Espeak } from '../../engine/text/espeak.ts';
import { fromIpa, parsePhonemeRules, toIpa } from '../../engine/text/phonemes.ts';

const read = (name: string): unknown => JSON.parse(readFileSync(new URL(`../../models/parley-speech/${name}`, import.meta.url), 'utf8'));
const rules = parsePhonemeRules(read('phoneme_rules.json'));
const vocab = new Map(Object.entries((read('config.json') as { vocab: Record<string, number> }).vocab));
const [from, to] = process.argv.slice(2) as [string, string];
const espeak = await Espeak.start(await createNodePlatform().espeak!());
let rows = '';
for (const line of readFileSync(from, 'utf8').trimEnd().split('\n')) {
  const [id, text] = line.split('\t') as [string, string];
  const ipa = await toIpa(espeak, text, 'en-us');
  rows += `${[id, text, fromIpa(ipa, rules, vocab).phonemes, ipa].join('\t')}\n`;
}
writeFileSync(to, rows);
process.exit(0);
