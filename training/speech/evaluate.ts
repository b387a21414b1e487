/**
 * Speaks the evaluation sentences through Parley and writes what `evaluate.py` measures: sentence i of eval_texts.tsv in voice
 * i mod 19 (OUT/sentences), a few sentences in every voice (OUT/voices/VOICE), and how Parley's own recogniser understands OUT/sentences
 * and, for comparison, the teachers' recordings of the same sentences (OUT/recognised.json).
 *
 *   npx tsx training/speech/evaluate.ts OUT [--teacher FOLDER] [--model models/parley-speech] [--limit N]
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Engine } from '../../engine/protocol.ts';
import { openEngine, recognise, speak, wordErrors } from '../through-parley.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
/** Said by every voice, so that voices and not texts are compared; a question among them. */
const SAME = [
  'The early boats were already far out on the quiet water.',
  'Would you like another cup of tea before we leave?',
  'My brother found seven old coins under the kitchen floor.',
  'Please put the heavy boxes in the back of the green car.',
];

interface Sentence {
  readonly id: string;
  readonly text: string;
}

/** Word error rate of the recogniser over a folder of sentences: errors of all over words of all. */
async function recogniseAll(engine: Engine, folder: string, sentences: readonly Sentence[]) {
  const rows = [];
  let [errors, words] = [0, 0];
  for (const { id, text } of sentences) {
    const { text: heard } = await recognise(engine, join(folder, `${id}.wav`));
    const found = wordErrors(text, heard);
    errors += found.errors;
    words += found.words;
    rows.push({ id, text, heard });
  }
  return { wer: errors / words, words, rows };
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    teacher: { type: 'string' },
    model: { type: 'string', default: join(HERE, '../../models/parley-speech') },
    limit: { type: 'string', default: 'Infinity' },
  },
});
const [out] = positionals;
if (out === undefined) throw new Error('give the folder to write to');
const limit = Number(values.limit);
const lines = readFileSync(join(HERE, 'eval_texts.tsv'), 'utf8').trimEnd().split('\n').slice(0, limit);
const sentences = lines.map((line): Sentence => ({ id: line.split('\t')[0]!, text: line.split('\t')[1]! }));
const engine = await openEngine({ speech: values.model, transcription: join(HERE, '../../models/parley-transcribe') });
// In the order of voices.json, as the teachers' recordings are.
const voices = Object.keys(JSON.parse(readFileSync(join(HERE, 'data/voices.json'), 'utf8')) as object);
const folder = join(out, 'sentences');
let [audio, spent] = [0, 0];
mkdirSync(folder, { recursive: true });
for (const [i, { id, text }] of sentences.entries()) {
  const took = await speak(engine, text, voices[i % voices.length]!, join(folder, `${id}.wav`));
  audio += took.audio;
  spent += took.spent;
}
for (const voice of voices.slice(0, limit)) {
  mkdirSync(join(out, 'voices', voice), { recursive: true });
  for (const [i, text] of SAME.slice(0, limit).entries()) await speak(engine, text, voice, join(out, 'voices', voice, `${i}.wav`));
}
console.log(`${sentences.length} sentences, ${audio.toFixed(0)} s of audio, real-time factor ${(spent / audio).toFixed(3)}`);
const parley = await recogniseAll(engine, folder, sentences);
console.log(`Parley's recogniser on Parley's speech: ${(100 * parley.wer).toFixed(1)} % of ${parley.words} words`);
const teacher = values.teacher && existsSync(values.teacher) ? await recogniseAll(engine, values.teacher, sentences) : undefined;
if (teacher) console.log(`Parley's recogniser on the teachers: ${(100 * teacher.wer).toFixed(1)} %`);
writeFileSync(join(out, 'recognised.json'), JSON.stringify({ voices, parley, teacher }, undefined, 1));
await engine.close();
process.exit(0);
