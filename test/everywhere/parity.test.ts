/**
 * The tab and Node compute the same: chat, log-mel features, a transcript and speech, in real Chromium and in a Node process, both on the SwiftShader that
 * comes with Chromium.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { nmse } from '../support/compare.ts';
import { SWIFTSHADER } from '../support/drivers.ts';
import { askWorker, buildWorkerPage } from '../support/browser/worker-page.ts';
import { measureInNode } from '../support/parity-process.ts';
import type { Measured } from '../support/parity-process.ts';
import { findChromium, launchChromium } from '../browser/chromium.ts';
import { serveFolder } from '../browser/static-server.ts';

const MINUTES = 60_000;

async function measureInTab(): Promise<Measured> {
  const server = await serveFolder(await buildWorkerPage('parity-worker.ts', 'parity-chromium'));
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    await page.goto(server.url);
    return (await page.evaluate(askWorker)) as Measured;
  } finally {
    await browser.close();
    await server.close();
  }
}

describe.skipIf(findChromium() === undefined || SWIFTSHADER === undefined)('the tab and Node on SwiftShader', () => {
  let tab: Measured;
  let node: Measured;

  beforeAll(async () => {
    node = await measureInNode({ VK_DRIVER_FILES: SWIFTSHADER, PARLEY_ADAPTER: 'SwiftShader' });
    tab = await measureInTab();
  }, 10 * MINUTES);

  test('both ran on SwiftShader, without a WebGPU error', () => {
    expect([node.adapter, tab.adapter].join(' ').toLowerCase()).toMatch(/swiftshader.* swiftshader/);
    expect([...node.errors, ...tab.errors]).toEqual([]);
  });

  test('both took the same kernels in the same variants', () => {
    expect(tab.result.kernels.length).toBeGreaterThan(30);
    expect(tab.result.kernels).toEqual(node.result.kernels);
  });

  test('five greedy answers have the same tokens', () => {
    const texts = ({ result }: Measured): string[][] => result.answers.map((answer) => answer.map(({ token }) => token));
    expect(texts(node)).toHaveLength(5);
    expect(Math.min(...texts(node).map((tokens) => tokens.length))).toBeGreaterThan(3);
    expect(texts(tab)).toEqual(texts(node));
  });

  test('the transcript has the same tokens and times', () => {
    expect(node.result.transcript.length).toBeGreaterThan(0);
    expect(tab.result.transcript).toEqual(node.result.transcript);
  });

  // The same kernels on the same driver leave no room for another rounding.
  test.each(['mel', 'audio'] as const)('%s agrees to 1e-8, and to the last bit where the kernels are the same', (name) => {
    const [actual, expected] = [tab.result[name], node.result[name]];
    expect(expected.length).toBeGreaterThan(1000);
    expect(expected.some((value) => Math.abs(value) > 0.01)).toBe(true);
    expect(actual).toHaveLength(expected.length);
    expect(nmse(actual, expected)).toBeLessThanOrEqual(1e-8);
    if (tab.result.kernels.join() === node.result.kernels.join()) {
      expect(actual.filter((value, i) => value !== expected[i])).toHaveLength(0);
    }
  });
});
