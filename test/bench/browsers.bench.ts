/** Chat in Firefox, in Node without subgroups on the same driver, and in Chromium on its own, back to back: `npm run bench -- browsers`. */
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { ROOT, findChromium, launchChromium } from '../browser/chromium.ts';
import { serveFolder } from '../browser/static-server.ts';
import { findFirefox, launchFirefox } from '../everywhere/firefox.ts';
import type { Speed } from '../support/browser/speed-worker.ts';
import { askWorker, buildWorkerPage } from '../support/browser/worker-page.ts';
import { loadChat, median, tokenTime } from '../support/chat-speed.ts';
import { testDevice } from '../support/device.ts';

const ROUNDS = 5;
const rate = (ms: number): string => `${ms.toFixed(1)} ms (${(1000 / ms).toFixed(1)} tokens/s)`;

/** What Firefox's step takes where nothing is between it and the driver: wgpu offers no subgroups either. */
async function node(): Promise<void> {
  const device = await testDevice({ disable: ['subgroups'] });
  const engine = await loadChat(device, join(ROOT, 'models'));
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) times.push(await tokenTime(engine));
  console.log(`Node without subgroups, on ${device.info.name}\n  a token: ${rate(median(times))}`);
  await engine.close();
}

function report(name: string, { late, empty, token }: Speed): void {
  console.log(`${name}, which ${late ? 'answers on a timer' : 'answers by itself'}`);
  console.log(`  empty queue: ${empty.alone.toFixed(2)} ms by itself, ${empty.nudged.toFixed(2)} ms with empty submissions`);
  console.log(`  a token: ${rate(token.alone)} by itself, ${rate(token.nudged)} with empty submissions`);
}

const server = await serveFolder(await buildWorkerPage('speed-worker.ts', 'speed'));
console.log(`load of the machine before: ${loadavg()[0]!.toFixed(1)}`);
if (findFirefox() !== undefined) {
  const browser = await launchFirefox();
  const page = await browser.newPage();
  await page.goto(server.url);
  report('Firefox', (await page.evaluate(askWorker)) as Speed);
  await browser.close();
}
await node();
if (findChromium() !== undefined) {
  const browser = await launchChromium();
  const page = await browser.newPage();
  await page.goto(server.url);
  report('Chromium', (await page.evaluate(askWorker)) as Speed);
  await browser.close();
}
await server.close();
process.exit(0);
