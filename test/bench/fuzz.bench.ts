/**
 * `npm run bench -- fuzz [seconds] [seed] [--case N or A-B]` (default 60 s of seed 1): hostile requests against a server of its own, made from good ones.
 * Fails, with the reproduction under .parley/fuzz/, when anything crashes, hangs, breaks the error contract, or is not answered rightly afterwards.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runFuzz } from '../fuzz/run.ts';
import { loadText, printTable } from './harness.ts';

const FOLDER = join(fileURLToPath(new URL('../..', import.meta.url)), '.parley', 'fuzz');
const MIB = 2 ** 20;

const { values, positionals } = parseArgs({ allowPositionals: true, options: { case: { type: 'string' } } });
const [seconds, seed] = [Number(positionals[0] ?? 60), Number(positionals[1] ?? 1)];
const [, from, to] = /^(\d+)(?:-(\d+))?$/.exec(values.case ?? '') ?? [];
if (!(seconds > 0) || !Number.isSafeInteger(seed) || seed < 0 || (values.case !== undefined && from === undefined)) {
  console.error('npm run bench -- fuzz [SECONDS] [SEED] [--case N or A-B]');
  process.exit(2);
}
const only = from === undefined ? { seconds } : { first: Number(from), cases: Number(to ?? from) - Number(from) + 1 };
console.log(
  `date ${new Date().toISOString().slice(0, 16)}Z, load ${loadText()}: seed ${seed}, ${from === undefined ? `${seconds} s` : `case ${values.case}`}`,
);

const { cases, counts, faults, before, after, slowest } = await runFuzz({
  seed,
  ...only,
  folder: FOLDER,
  onProgress: (line) => console.log(`${line}, load ${loadText()}`),
});

console.log(`\n${cases} cases: ${Object.entries(counts).sort(([a], [b]) => a.localeCompare(b)).map(([name, count]) => `${name} ${count}`).join(', ')}`); // prettier-ignore
console.log(`slowest: ${slowest.map(({ index, name, ms }) => `${(ms / 1000).toFixed(1)} s (case ${index}, ${name})`).join('; ')}\n`);
if (before && after) {
  const row = (name: string, key: keyof typeof before, unit = 1): string[] => [name, ...[before, after].map((held) => (held[key] / unit).toFixed(unit > 1 ? 1 : 0))]; // prettier-ignore
  printTable(
    ['idle, cache flushed', 'after a third', 'at the end'],
    [
      row('GPU buffers', 'gpuBuffers'),
      row('GPU MiB', 'gpuBytes', MIB),
      row('KV pages held', 'kvPagesUsed'),
      row('server MiB resident', 'serverBytes', MIB),
      row('engine MiB resident', 'engineBytes', MIB),
    ],
  );
}
for (const { what, count, first, name, path } of faults)
  console.log(`FAILS  ${what}\n       ${count} times, first in case ${first} (${name}): ${path}`);
if (faults.length === 0) console.log('holds  no crash, no hang, no answer against the contract');
process.exit(faults.length > 0 ? 1 : 0);
