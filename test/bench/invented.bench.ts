/**
 * `npm run bench -- invented MODEL [MODEL ...]`: words that transcription models write for 300 clips in which nobody speaks (test/support/non-speech.ts), behind
 * the gate of speech as the server has it; `--without` hears all of it. Fails where a word is written. Minutes a model, so only by name.
 */
import { basename, resolve } from 'node:path';
import { openEngine } from '../../training/through-parley.ts';
import { nonSpeechClips } from '../support/non-speech.ts';
import { loadText, printTable } from './harness.ts';

const args = process.argv.slice(2);
const models = args.filter((one) => one !== '--without');
if (models.length === 0) throw new Error('give the folders of one or more transcription models');

const rows: string[][] = [];
for (const model of models) {
  const engine = await openEngine({ transcription: resolve(model), vad: !args.includes('--without') });
  const sum = { clips: 0, heard: 0, words: 0 };
  for (const { name, samples } of nonSpeechClips()) {
    sum.clips++;
    for await (const event of engine.transcribe({ samples, language: 'en' }, new AbortController().signal)) {
      if (event.type !== 'finish' || event.text === '') continue;
      sum.heard++;
      sum.words += event.text.split(/\s+/).length;
      console.log(`${name}: ${event.text.slice(0, 200)}`);
    }
  }
  await engine.close();
  if (sum.words > 0 && !args.includes('--without')) process.exitCode = 1;
  rows.push([basename(resolve(model)), ...Object.values(sum).map(String)]);
}
printTable(['model', 'clips', 'with words', 'words'], rows);
console.log(loadText());
process.exit();
