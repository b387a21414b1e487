/**
 * `npm run bench -- soak [requests]` (default 5,000): mixed chat requests through HTTP against a server of its own, a third of which go away midway;
 * fails when GPU buffers, pages or resident memory grow by more than 10 % after the first tenth.
 */
import { spawnAt, whenReady } from '../support/server-process.ts';
import { loadText, printTable } from './harness.ts';
import { growth, soak } from './serving/soak.ts';

const SERVER = new URL('./serving/soak-server.ts', import.meta.url);
const MIB = 2 ** 20;
const requests = Number(process.argv[2] ?? 5000);
const warm = Math.ceil(requests / 10);

const server = await whenReady(spawnAt(SERVER, ['--speech-model=none', '--transcription-model=none']));
const url = server.urls['chat'];
if (url === undefined) throw new Error(`the server did not start:\n${server.lines.join('\n')}`);
console.log(`date ${new Date().toISOString().slice(0, 16)}Z, load ${loadText()}: ${requests} requests to ${url}`);
const onProgress = (done: number): void => {
  console.log(`${done} sent, load ${loadText()}`);
};
const { before, after, counts, problems, seconds } = await soak({
  url,
  pid: server.child.pid!,
  collects: true,
  requests,
  warm,
  onProgress,
});
server.child.kill('SIGTERM');

const row = (name: string, of: (holdings: typeof before) => number, unit = 1, digits = 0): string[] => [
  name,
  (of(before) / unit).toFixed(digits),
  (of(after) / unit).toFixed(digits),
];
printTable(
  ['idle, cache flushed', `after ${warm}`, `after ${requests}`],
  [
    row('GPU buffers', ({ gpuBuffers }) => gpuBuffers),
    row('GPU MiB', ({ gpuBytes }) => gpuBytes, MIB, 1),
    row('KV pages held', ({ kvPagesUsed }) => kvPagesUsed),
    row('server MiB resident', ({ serverBytes }) => serverBytes, MIB, 1),
    row('engine MiB resident', ({ engineBytes }) => engineBytes, MIB, 1),
  ],
);
console.log(`${seconds.toFixed(0)} s; ${Object.entries(counts).map(([name, count]) => `${name} ${count}`).join(', ')}`); // prettier-ignore
const grown = growth(before, after, 0.1);
for (const problem of [...problems.slice(0, 20), ...grown]) console.log(`FAILS  ${problem}`);
if (problems.length + grown.length === 0) console.log('holds  nothing grows');
await server.exit;
process.exit(problems.length + grown.length > 0 ? 1 : 0);
