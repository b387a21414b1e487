/**
 * Speaks `id<TAB>voice<TAB>text` lines with the bundled checkpoint, as OUT/ID.wav: the recordings of `own_voices.py`.
 *
 *   npx tsx training/transcription/speak_own.ts LIST OUT
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openEngine, speak } from '../through-parley.ts';

const [list, out] = process.argv.slice(2);
if (list === undefined || out === undefined) throw new Error('give the list of sentences and the folder to write to');
mkdirSync(out, { recursive: true });
const engine = await openEngine({ speech: fileURLToPath(new URL('../../models/parley-speech', import.meta.url)) });
for (const line of readFileSync(list, 'utf8').trimEnd().split('\n')) {
  const [id, voice, text] = line.split('\t') as [string, string, string];
  const path = join(out, `${id}.wav`);
  if (!existsSync(path)) await speak(engine, text, voice, path);
}
await engine.close();
process.exit(0);
