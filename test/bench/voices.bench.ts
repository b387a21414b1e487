/**
 * `npm run bench -- voices SPEECH TRANSCRIPTION [NAME ...] [--text TEXT] [--languages]`: every other name of a voice that the speech model can speak (the interface's 19 and OpenAI's 13;
 * or the names given) says four sentences (or TEXT), and the transcription model writes down what it hears. Prints the word errors a name, and fails above 5 %.
 * Both are loaded as they are published: a folder of Kokoro-82M's files and one of Whisper base. Names that stand for the same voice are spoken once.
 * With `--languages` the voices of languages other than English (or those named) say the sentences of test/fixtures/misaki-languages.json instead, by turns, and
 * nothing is required of the errors, most of which are Whisper base's.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { languageOfVoice } from '../../engine/util/speech-languages.ts';
import { VOICE_TABLE, resolveVoices } from '../../engine/util/voices.ts';
import { openEngine, recognise, speak, wordErrors } from '../../training/through-parley.ts';
import { fixed, loadText, printTable } from './harness.ts';

/** Nothing in them is spelled in two ways. */
const TEXT = `The meeting starts soon, so please bring your notes. We walked along the river until the sun went down.
Could you tell me where the nearest train station is? My sister baked an apple cake for all the children.`;
const MOST_ERRORS = 0.05;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { text: { type: 'string', default: TEXT }, languages: { type: 'boolean' } },
});
const [speech, transcription, ...asked] = positionals;
if (speech === undefined || transcription === undefined)
  throw new Error('give the folder of a speech model and that of a transcription model');
const engine = await openEngine({ speech, transcription });
const path = join(tmpdir(), `parley-voices-${process.pid}.wav`);
if (values.languages === true) {
  await speakLanguages(asked);
  await engine.close();
  process.exit(0);
}
const names = [...resolveVoices(VOICE_TABLE, engine.info().models.find(({ task }) => task === 'speech')?.voices ?? [])];
const chosen = asked.length > 0 ? names.filter(([name]) => asked.includes(name)) : names;
if (chosen.length < asked.length) throw new Error(`this model speaks ${names.map(([name]) => name).join(', ')}`);

/** Has the voices of each language say its sentences, and prints the word errors of each language. */
async function speakLanguages(languages: readonly string[]): Promise<void> {
  const file = new URL('../fixtures/misaki-languages.json', import.meta.url);
  const sentences = JSON.parse(readFileSync(file, 'utf8')) as Record<string, { text: string }[]>;
  const voices = engine.info().models.find(({ task }) => task === 'speech')?.voices ?? [];
  const rows: string[][] = [];
  for (const [language, texts] of Object.entries(sentences)) {
    const own = voices.filter((voice) => languageOfVoice(voice) === language);
    if (own.length === 0 || (languages.length > 0 && !languages.includes(language))) continue;
    let [errors, words] = [0, 0];
    for (const [i, { text }] of texts.entries()) {
      const voice = own[i % own.length]!;
      await speak(engine, text, voice, path);
      const heard = (await recognise(engine, path, language.slice(0, 2))).text;
      const one = wordErrors(text, heard);
      errors += one.errors;
      words += one.words;
      console.log(`${voice}: ${text} | ${heard} | ${one.errors}`);
    }
    rows.push([language, own.join(', '), String(words), fixed((100 * errors) / words, 1)]);
  }
  rmSync(path, { force: true });
  printTable(['language', 'voices', 'words', 'word errors, %'], rows);
  console.log(loadText());
}

interface Spoken {
  readonly seconds: number;
  readonly errors: number;
  readonly words: number;
}
const spoken = new Map<string, Spoken>();
for (const [name, voice] of chosen) {
  if (spoken.has(voice)) continue;
  const { audio, spent, first } = await speak(engine, values.text, voice, path);
  const { text } = await recognise(engine, path);
  spoken.set(voice, { seconds: audio, ...wordErrors(values.text, text) });
  console.log(
    `${name} = ${voice}: ${audio.toFixed(1)} s of audio in ${spent.toFixed(0)} s, the first after ${first.toFixed(1)} s; ${text}`,
  );
}
rmSync(path, { force: true });
await engine.close();

const wrong = (voice: string): number => spoken.get(voice)!.errors / spoken.get(voice)!.words;
printTable(
  ['name', 'voice', 'audio, s', 'word errors, %'],
  chosen.map(([name, voice]) => [name, voice, fixed(spoken.get(voice)!.seconds, 1), fixed(100 * wrong(voice), 1)]),
);
const all = [...spoken.values()];
const sum = (key: keyof Spoken): number => all.reduce((total, one) => total + one[key], 0);
console.log(
  `${chosen.length} names, ${all.length} voices, ${fixed((100 * sum('errors')) / sum('words'), 1)} % of ${sum('words')} words; ${loadText()}`,
);
const failed = chosen.filter(([, voice]) => wrong(voice) > MOST_ERRORS).map(([name]) => name);
if (failed.length > 0) console.log(`above ${100 * MOST_ERRORS} %: ${failed.join(', ')}`);
process.exit(failed.length > 0 ? 1 : 0);
