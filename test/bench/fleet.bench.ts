/**
 * `npm run bench -- fleet [ROUTER ...]`: workers with the bundled models behind routers that exist (sglang-router, smg, HAProxy, nginx, LiteLLM): what of
 * the API passes, the cached prefixes beside one worker alone, and what is lost when a worker is drained and when it is killed. Fails on a lost
 * request. Fetches wheels into a folder outside the repository (PARLEY_ROUTERS); what cannot be had is skipped with its reason. Minutes, so only by name.
 */
import { loadText, printTable } from './harness.ts';
import { ROUTERS } from './fleet/routers.ts';
import type { Router } from './fleet/routers.ts';
import { departure, flush, prefixes, routes } from './fleet/scenes.ts';
import type { Losses } from './fleet/scenes.ts';
import { startWorker, stopWorker } from './fleet/workers.ts';

const WORKERS = Number(process.env['PARLEY_WORKERS'] ?? 2);
const REQUESTS = 160;
const LEAST_SHARE = 0.8;
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !ROUTERS.some((router) => router.name === name));
if (unknown.length > 0)
  throw new Error(`no router is named ${unknown.join(', ')}; there are: ${ROUTERS.map(({ name }) => name).join(', ')}`);

const failures: string[] = [];
process.on('exit', () => {
  for (const { child } of workers) child.kill('SIGKILL');
});
let workers = await Promise.all(Array.from({ length: WORKERS }, () => startWorker()));
console.log(`date ${new Date().toISOString().slice(0, 16)}Z, load ${loadText()}: ${WORKERS} workers`);
const alone = await prefixes({ base: workers[0]!.base.chat });
console.log(`one worker alone: ${percent(alone.share)} of prompt tokens cached, ${alone.tokensPerSecond.toFixed(0)} tokens/s`);

for (const kind of ROUTERS.filter(({ name }) => asked.length === 0 || asked.includes(name))) {
  const reason = kind.missing();
  if (reason !== undefined) {
    console.log(`${kind.name}: skipped: ${reason}`);
    continue;
  }
  const fail = (what: string): void => void failures.push(`${kind.name}: ${what}`);
  let router: Router | undefined;
  try {
    router = await kind.start(workers);
    const passed = await routes(router, workers[0]!);
    printTable([kind.name, 'beside the worker itself'], Object.entries(passed));
    for (const [route, verdict] of Object.entries(passed)) if (verdict.startsWith('DIFFERS')) fail(`${route} ${verdict}`);
    await flush(workers);
    const { share, tokensPerSecond } = await prefixes({ base: router.base.chat!, headers: router.headers });
    console.log(
      `${percent(share)} of prompt tokens cached, ${percent(share / alone.share)} of one worker's; ${tokensPerSecond.toFixed(0)} tokens/s`,
    );
    if (['sglang-router', 'smg'].includes(kind.name) && share < LEAST_SHARE * alone.share) fail(`${percent(share)} cached`);
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const { losses, held, exit, workers: now } = await departure(router, workers, signal, REQUESTS);
      workers = [...now];
      console.log(`${signal} to the busiest (${held} requests) under 40 clients: ${describe(losses)}; exit code ${exit}`);
      for (const why of new Set([...losses.lost, ...losses.broken])) console.log(`  ${why.slice(0, 300)}`);
      if (losses.wrong > 0) fail(`${signal}: ${losses.wrong} wrong`);
      if (losses.lost.length > 0 || (signal === 'SIGTERM' && losses.broken.length > 0)) fail(`${signal}: ${describe(losses)}`);
    }
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error));
    console.log(router?.lines.join('').slice(-3000));
  } finally {
    await router?.stop();
  }
}
await Promise.all(workers.map(stopWorker));
for (const failure of failures) console.log(`FAILS  ${failure}`);
if (failures.length === 0) console.log('holds  nothing is lost that had not begun');
process.exit(failures.length > 0 ? 1 : 0);

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

function describe({ whole, lost, broken, wrong }: Losses): string {
  return `${whole} whole, ${wrong} of them wrong, ${lost.length} lost, ${broken.length} broken off`;
}
