/**
 * Chat, log-mel features, a transcript and speech are the same to the last bit in Node (Dawn), Deno and Firefox (both wgpu) on one graphics driver, where
 * they take the same kernels: wgpu offers no subgroups yet, so Node is measured without them too.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { serveFolder } from '../browser/static-server.ts';
import { askWorker, buildWorkerPage } from '../support/browser/worker-page.ts';
import { nmse } from '../support/compare.ts';
import { SHORT_VECTORS } from '../support/drivers.ts';
import { denoVersion, runDeno } from '../support/deno/run-deno.ts';
import { measureInNode } from '../support/parity-process.ts';
import type { Measured } from '../support/parity-process.ts';
import { findFirefox, launchFirefox } from './firefox.ts';

async function measureInDeno(): Promise<Measured> {
  const { stdout } = await runDeno(['--allow-read=.', '--allow-sys=systemMemoryInfo'], 'test/support/deno/parity.ts');
  return JSON.parse(stdout) as Measured;
}

async function measureInFirefox(): Promise<Measured> {
  const server = await serveFolder(await buildWorkerPage('parity-worker.ts', 'parity-firefox'));
  const browser = await launchFirefox();
  try {
    const page = await browser.newPage();
    await page.goto(server.url);
    return (await page.evaluate(askWorker)) as Measured;
  } finally {
    await browser.close();
    await server.close();
  }
}

const PLACES = [
  ...(denoVersion() === undefined ? [] : [['Deno', measureInDeno] as const]),
  ...(findFirefox() === undefined ? [] : [['Firefox', measureInFirefox] as const]),
];

describe.skipIf(PLACES.length === 0)('equal answers', () => {
  let node: Measured;
  let plain: Measured;
  beforeAll(async () => {
    [node, plain] = [await measureInNode({}), await measureInNode(SHORT_VECTORS, 'subgroups')];
  });

  test.each(PLACES)('%s answers as Node does without subgroups, to the last bit', async (_, measure) => {
    const { errors, result } = await measure();
    expect(errors).toEqual([]);
    expect(result.answers.flat().length).toBeGreaterThan(40);
    expect(result.audio.length).toBeGreaterThan(24_000);
    // Of a difference, the numbers say more than thousands of lines.
    for (const name of ['mel', 'audio'] as const) {
      const [actual, wanted] = [result[name], plain.result[name]];
      expect(actual).toHaveLength(wanted.length);
      expect({ [name]: actual.filter((value, i) => value !== wanted[i]).length, nmse: nmse(actual, wanted) }).toEqual({
        [name]: 0,
        nmse: 0,
      });
    }
    expect(result.answers).toEqual(plain.result.answers);
    expect(result.transcript).toEqual(plain.result.transcript);
    expect(result.kernels).toEqual(plain.result.kernels);
  });

  test('with subgroups other kernels add in another order: the same words, and sound within 1e-8', () => {
    expect(node.result.kernels).not.toEqual(plain.result.kernels);
    const words = ({ result }: Measured): string[][] => result.answers.map((answer) => answer.map(({ token }) => token));
    expect(words(plain)).toEqual(words(node));
    expect(plain.result.transcript).toEqual(node.result.transcript);
    expect(plain.result.audio).toHaveLength(node.result.audio.length);
    expect(nmse(plain.result.audio, node.result.audio)).toBeLessThanOrEqual(1e-8);
  });
});
