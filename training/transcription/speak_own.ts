/**
 * Speaks `id<TAB>voice<TAB>text` lines with a Parley checkpoint, as OUT/ID.wav: the recordings of `own_voices.py`.
 *
 *   npx tsx training/transcription/speak_own.ts LIST OUT [--model models/parley-speech]
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openEngine, speak } from '../through-parley.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { model: { type: 'string', default: fileURLToPath(new URL('../../models/parley-speech', import.meta.url)) } },
});
const [list, out] = positionals;
if (list === undefined || out === undefined) throw new Error('give the list of sentences and the folder to write to');
mkdirSync(out, { recursive: true });
const engine = await openEngine({ speech: values.model });
for (const line of readFileSync(list, 'utf8').trimEnd().split('\n')) {
  const [id, voice, text] = line.split('\t') as [string, string, string];
  const path = join(out, `${id}.wav`);
  if (!existsSync(path)) await speak(engine, text, voice, path);
}
await engine.close();
process.exit(0);
