/**
 * `npm run bench -- page [rounds]` (default 3): the playground's weight without models, and how long somebody who opens it for the first time waits for
 * the first token of an answer, everything computed in the tab on Chromium's software adapter. Each round is a fresh profile.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { buildPlayground, findChromium, launchChromium } from '../browser/chromium.ts';
import { openPage, waitForState } from '../browser/playground.ts';
import { serveFolder } from '../browser/static-server.ts';
import { loadText, printTable } from './harness.ts';

if (findChromium() === undefined)
  throw new Error('no Chromium: install one (on Debian: apt-get install chromium) or name it in PARLEY_CHROMIUM');
const folder = buildPlayground('bench');
const files = (readdirSync(folder, { recursive: true, withFileTypes: true }) as { name: string; parentPath: string; isFile(): boolean }[])
  .filter((entry) => entry.isFile())
  .map(({ name, parentPath }) => join(parentPath, name))
  .filter((path) => !path.startsWith(join(folder, 'models')));
const weight = (compress: (bytes: Buffer) => Buffer): number =>
  files.reduce((sum, path) => sum + compress(readFileSync(path)).length, 0) / 1e6;
console.log(
  `${files.length} files without models: ${weight((bytes) => bytes).toFixed(2)} MB, ${weight(gzipSync).toFixed(2)} MB by gzip, ${weight(brotliCompressSync).toFixed(2)} MB by brotli`,
);

const server = await serveFolder(folder);
const rows: string[][] = [];
for (let round = 0; round < Number(process.argv[2] ?? 3); round++) {
  const browser = await launchChromium();
  const from = performance.now();
  const seconds = (): string => ((performance.now() - from) / 1000).toFixed(1);
  const page = await openPage(await browser.newContext(), server.url);
  const shown = seconds();
  await page.click('text=Load the model');
  await waitForState(page, 'chat', 'ready');
  const loaded = seconds();
  await page.fill('.composer textarea', 'What is the capital of France?');
  await page.press('.composer textarea', 'Enter');
  await page.waitForFunction(() => (document.querySelector('.message.assistant .markdown')?.textContent ?? '').trim().length > 0);
  rows.push([String(round + 1), shown, loaded, seconds(), loadText()]);
  await browser.close();
}
await server.close();
printTable(['round', 'page shown s', 'model ready', 'first token', 'load'], rows);
process.exit(0);
