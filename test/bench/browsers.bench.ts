/**
 * `npm run bench -- browsers [write]`: chat in Firefox, in Node and Deno on the same driver, and in Chromium on its own, back to back. With `write` the table of
 * docs/platforms.md gets the speeds, with the machine's load where other work ran.
 */
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { ROOT, findChromium, launchChromium } from '../browser/chromium.ts';
import { serveFolder } from '../browser/static-server.ts';
import { findFirefox, launchFirefox } from '../everywhere/firefox.ts';
import type { Speed } from '../support/browser/speed-worker.ts';
import { askWorker, buildWorkerPage } from '../support/browser/worker-page.ts';
import { loadChat, tokenTimes } from '../support/chat-speed.ts';
import { denoVersion, runDeno } from '../support/deno/run-deno.ts';
import { testDevice } from '../support/device.ts';
import { addSpeeds } from '../tools/platform-report.ts';

const ROUNDS = 5;
const rate = (ms: number): string => `${ms.toFixed(1)} ms (${(1000 / ms).toFixed(1)} tokens/s)`;

/** ms per token by the first word of the table's row. */
const speeds = new Map<string, number>();
const load = loadavg()[0]!;

/** Without subgroups it is what Firefox's and Deno's step takes where nothing is between it and the driver: wgpu offers none. */
async function node(...disable: readonly 'subgroups'[]): Promise<void> {
  const device = await testDevice({ disable });
  const engine = await loadChat(device, join(ROOT, 'models'));
  const ms = await tokenTimes(engine, ROUNDS);
  console.log(`Node${disable.length > 0 ? ' without subgroups' : ''}, on ${device.info.name}\n  a token: ${rate(ms)}`);
  if (disable.length === 0) speeds.set('Node', ms);
  await engine.close();
}

async function deno(): Promise<void> {
  const { stdout } = await runDeno(['--allow-read=.', '--allow-sys=systemMemoryInfo'], 'test/support/deno/speed.ts', [String(ROUNDS)]);
  const { adapter, ms } = JSON.parse(stdout) as { readonly adapter: string; readonly ms: number };
  console.log(`Deno, on ${adapter}\n  a token: ${rate(ms)}`);
  speeds.set('Deno', ms);
}

function report(name: string, { late, empty, token }: Speed): void {
  console.log(`${name}, which ${late ? 'answers on a timer' : 'answers by itself'}`);
  console.log(`  empty queue: ${empty.alone.toFixed(2)} ms by itself, ${empty.nudged.toFixed(2)} ms with empty submissions`);
  console.log(`  a token: ${rate(token.alone)} by itself, ${rate(token.nudged)} with empty submissions`);
  speeds.set(name, late ? token.nudged : token.alone);
}

const server = await serveFolder(await buildWorkerPage('speed-worker.ts', 'speed'));
console.log(`load of the machine before: ${load.toFixed(1)}`);
if (findFirefox() !== undefined) {
  const browser = await launchFirefox();
  const page = await browser.newPage();
  await page.goto(server.url);
  report('Firefox', (await page.evaluate(askWorker)) as Speed);
  await browser.close();
}
await node('subgroups');
if (denoVersion() !== undefined) await deno();
await node();
if (findChromium() !== undefined) {
  const browser = await launchChromium();
  const page = await browser.newPage();
  await page.goto(server.url);
  report('Chromium', (await page.evaluate(askWorker)) as Speed);
  await browser.close();
}
await server.close();
if (process.argv[2] === 'write') addSpeeds(speeds, load);
process.exit(0);
