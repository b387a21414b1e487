/**
 * Word error rates of a Whisper-shaped checkpoint through Parley: every clip that `eval_make.py` listed in WORK/eval/refs.json, by set.
 * Case and punctuation are ignored; in sets without speech the words that were heard are counted instead.
 *
 *   npx tsx training/transcription/evaluate.ts WORK [--model FOLDER] [--limit N] [--only NAME ...] [--without]
 *
 * `--only` takes the sets whose names begin so, `--without` leaves the gate of speech out.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openEngine, recognise, wordErrors } from '../through-parley.ts';

/** Clips in flight: the engine decodes them side by side. */
const AT_ONCE = 8;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    model: { type: 'string', default: fileURLToPath(new URL('../../models/parley-transcribe', import.meta.url)) },
    limit: { type: 'string', default: '1000' },
    only: { type: 'string', multiple: true, default: [''] },
    without: { type: 'boolean', default: false },
  },
});
const [work] = positionals;
if (work === undefined) throw new Error('give the work folder that holds eval/refs.json');
const refs = JSON.parse(readFileSync(join(work, 'eval/refs.json'), 'utf8')) as Record<string, [wav: string, text: string][]>;
const engine = await openEngine({ transcription: values.model, vad: !values.without });

for (const [name, clips] of Object.entries(refs)) {
  if (!values.only.some((one) => name.startsWith(one))) continue;
  let [errors, words, audio] = [0, 0, 0];
  const from = performance.now();
  const chosen = clips.slice(0, Number(values.limit));
  for (let i = 0; i < chosen.length; i += AT_ONCE) {
    const group = chosen.slice(i, i + AT_ONCE);
    const heard = await Promise.all(group.map(([file]) => recognise(engine, join(work, file))));
    for (const [k, [file, text]] of group.entries()) {
      const { text: hypothesis, seconds } = heard[k]!;
      const found = wordErrors(text, hypothesis);
      errors += found.errors;
      words += found.words;
      audio += seconds;
      console.log(`  ${file}: ${text} | ${hypothesis}`);
    }
  }
  const spent = (performance.now() - from) / 1000;
  const result = words === 0 ? `${errors} words heard` : `${((100 * errors) / words).toFixed(1)} % of ${words} words`;
  console.log(
    `${name.padEnd(26)} ${String(chosen.length).padStart(4)} clips  ${result}  (${audio.toFixed(0)} s of audio in ${spent.toFixed(0)} s)`,
  );
}
await engine.close();
process.exit(0);
