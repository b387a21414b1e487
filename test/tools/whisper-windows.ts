/**
 * Where Parley cuts long recordings, for test/tools/dump_whisper_words.py: `npx tsx test/tools/whisper-windows.ts FOLDER [SECONDS]` writes NAME.windows.json beside every 16 kHz
 * WAV file of the folder that is longer than a window of SECONDS (30).
 */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { splitAtPauses } from '../../engine/audio/windows.ts';

const RATE = 16_000;
const [folder, seconds = '30'] = process.argv.slice(2);
if (folder === undefined) throw new Error('give the folder of the recordings');
for (const name of readdirSync(folder).filter((one) => one.endsWith('.wav'))) {
  const wav = parseWav(readFileSync(join(folder, name)));
  if (wav.sampleRate !== RATE) throw new Error(`${name} has ${wav.sampleRate} Hz, not ${RATE}`);
  const windows = splitAtPauses(wavToMono(wav), RATE, Number(seconds));
  if (windows.length === 1) continue;
  writeFileSync(
    join(folder, name.replace(/wav$/, 'windows.json')),
    `${JSON.stringify(windows.map(({ start, samples }) => [start, samples.length]))}\n`,
  );
  console.log(`${name}: ${windows.length} windows`);
}
