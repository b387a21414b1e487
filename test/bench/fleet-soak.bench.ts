/**
 * `npm run bench -- fleet-soak [MINUTES] [ROUTER] [SECONDS]` (default 60, haproxy and 300): 64 clients of mixed chat, speech and transcription through a router
 * in front of two workers, a third of the chats leaving midway, one worker drained and started anew every so many seconds. Every answer is compared with what
 * one worker alone says; fails on one that differs, and where the other worker's memory grows by more than a tenth after the first tenth of the time. Only by name.
 */
import { loadText } from './harness.ts';
import { ROUTERS } from './fleet/routers.ts';
import { fleetSoak } from './fleet/soak.ts';
import { startWorker, stopWorker } from './fleet/workers.ts';

const MOST_GROWTH = 1.1;
const [minutes = '60', name = 'haproxy', seconds = '300'] = process.argv.slice(2);
const kind = ROUTERS.find((router) => router.name === name);
if (!kind) throw new Error(`no router is named ${name}; there are: ${ROUTERS.map((router) => router.name).join(', ')}`);
const reason = kind.missing();
if (reason !== undefined) {
  console.log(`skipped: ${reason}`);
  process.exit(0);
}
let workers = await Promise.all([startWorker(), startWorker()]);
process.on('exit', () => {
  for (const { child } of workers) child.kill('SIGKILL');
});
const router = await kind.start(workers);
console.log(`date ${new Date().toISOString().slice(0, 16)}Z, load ${loadText()}: ${minutes} minutes through ${name}`);
const report = await fleetSoak(router, workers, { minutes: Number(minutes), restartSeconds: Number(seconds), onProgress: (line) => console.log(line) }); // prettier-ignore
workers = [...report.workers] as typeof workers;
await router.stop();
await Promise.all(workers.map(stopWorker));
console.log(Object.entries(report.counts).map(([task, count]) => `${task} ${count}`).join(', ')); // prettier-ignore
console.log(`MiB by the minute: ${report.memory.map((mib) => mib.toFixed(0)).join(' ')}`);
const warm = Math.max(...report.memory.slice(0, Math.max(2, Math.ceil(report.memory.length / 10))));
const grown = report.memory.at(-1)! > warm * MOST_GROWTH;
for (const problem of report.problems.slice(0, 20)) console.log(`FAILS  ${problem}`);
if (grown) console.log(`FAILS  memory grew from ${warm.toFixed(0)} to ${report.memory.at(-1)!.toFixed(0)} MiB`);
if (report.problems.length === 0 && !grown) console.log('holds  every answer is what one worker alone says, and memory is flat');
process.exit(report.problems.length > 0 || grown ? 1 : 0);
