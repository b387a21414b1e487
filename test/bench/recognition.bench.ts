/**
 * `npm run bench -- recognition RECORDINGS COUNT MODEL [MODEL ...]`: word errors of transcription models on the first COUNT recordings of a folder with
 * transcripts.tsv (the file first, what is said last), such as LJ Speech's. The files are WAV; for one of another kind the WAV of its name is taken.
 * Case and punctuation are ignored, and nothing else is made equal: "18" for "eighteen" is an error. So a second figure leaves out the recordings of which the
 * model wrote a digit.
 */
import { readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { openEngine, recognise, wordErrors } from '../../training/through-parley.ts';
import { fixed, loadText, printTable } from './harness.ts';

const [recordings, count, ...models] = process.argv.slice(2);
if (recordings === undefined || !(Number(count) > 0) || models.length === 0)
  throw new Error('give a folder of recordings, how many of them, and models');
const clips = readFileSync(join(recordings, 'transcripts.tsv'), 'utf8')
  .trimEnd()
  .split('\n')
  .slice(0, Number(count))
  .map((line) => line.split('\t'))
  .map((fields) => ({ path: join(recordings, fields[0]!.replace(/\.\w+$/, '.wav')), said: fields.at(-1)! }));

const rows: string[][] = [];
for (const model of models) {
  const engine = await openEngine({ transcription: resolve(model) });
  const all = { clips: 0, errors: 0, words: 0 };
  const spelled = { clips: 0, errors: 0, words: 0 };
  let audio = 0;
  const from = performance.now();
  for (const { path, said } of clips) {
    const { text, seconds } = await recognise(engine, path);
    const found = wordErrors(said, text);
    for (const sum of /\d/.test(text) ? [all] : [all, spelled]) {
      sum.clips++;
      sum.errors += found.errors;
      sum.words += found.words;
    }
    audio += seconds;
    if (found.errors > 0) console.log(`${basename(path)}: ${said} | ${text.trim()}`);
  }
  const spent = (performance.now() - from) / 1000;
  await engine.close();
  rows.push([
    basename(resolve(model)),
    ...[all, spelled].flatMap((sum) => [String(sum.clips), String(sum.words), fixed((100 * sum.errors) / sum.words, 1)]),
    fixed(audio, 0),
    fixed(spent, 0),
  ]);
}
printTable(['model', 'clips', 'words', 'word errors, %', 'without digits: clips', 'words', 'word errors, %', 'audio, s', 'spent, s'], rows);
console.log(loadText());
process.exit(0);
