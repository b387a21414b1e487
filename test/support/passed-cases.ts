/**
 * Which cases need not run, since what is judged would be computed from what it was when they passed: the provenance of all that they read (provenance-gpu.ts). Digests of these, of
 * what is expected, of the adapter and of the code that judges are written down where a case has passed (`PARLEY_TABLE=write`). A change of a kernel, of the code that dispatches it or
 * of weights changes the digests of its cases, which then run. The weekly run runs all.
 *
 * This is a setup file of tests in Node that use known-cases.ts.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { useKnownCases } from './known-cases.ts';
import type { Ask, Judgement } from './known-cases.ts';
import { digestOf, provenanceDevice } from './provenance-gpu.ts';
import { THOROUGH } from './thorough.ts';

const ROOT = new URL('../../', import.meta.url);
const isWriting = process.env['PARLEY_TABLE'] === 'write';
const { testPath } = expect.getState();
/** By its folder and name. */
const name = relative(fileURLToPath(new URL('test/', ROOT)), testPath!).replace(/\.test\.ts$/, '');

/** A change of how results are judged makes all cases run: of this, of the tests' own text unless they are tables of kernel cases, and of the library that compiles WGSL. */
const judges = ['known-cases', 'kernel-case', 'compare', 'decoder-harness', 'gguf-fixtures', 'pages'].map(
  (file) => `test/support/${file}.ts`,
);
const judged = digestOf(...[...judges, 'node_modules/webgpu/package.json'].map((path) => readFileSync(new URL(path, ROOT))));
const source = readFileSync(testPath!, 'utf8');
const shaders = createNodePlatform().shaders();

/** What `ask` would read from a device like this, as a digest, with what is expected of it. It throws where that is not known beforehand. `texts`: other texts of kernels. */
export async function digestOfCase(
  like: Device,
  ask: Ask<unknown>,
  { expected, isOfTable }: Judgement,
  texts?: ReadonlyMap<string, string>,
): Promise<string> {
  const { device, read } = await provenanceDevice(like, texts ?? (await shaders));
  const work: unknown[] = [];
  const { counter } = device.profiler;
  // Cases compare what it says is written.
  if (counter)
    device.profiler.counter = (...dispatch) => {
      const counted = counter(...dispatch);
      work.push(counted);
      return counted;
    };
  await ask(device);
  return digestOf(judged, like.info, process.env['GALLIVM_PERF'] ?? '', work, read, isOfTable ? '' : source, ...expected).slice(0, 12);
}

/** The digests of the test file that runs. */
const path = new URL(`test/fixtures/passed-cases/${name}.txt`, ROOT);
const written = new Set(existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []);
const passed = new Set<string>();

useKnownCases({
  digest: async (...asked) => {
    try {
      return await digestOfCase(...asked);
    } catch {
      // What is wrong with it, if anything, its run will say.
      return undefined;
    }
  },
  has: (digest) => {
    const isKnown = !THOROUGH && written.has(digest);
    if (isKnown) passed.add(digest);
    return isKnown;
  },
  add: (digest) => void passed.add(digest),
});

afterAll(() => {
  if (!isWriting || passed.size === 0) return;
  mkdirSync(dirname(fileURLToPath(path)), { recursive: true });
  writeFileSync(path, `${[...passed].sort().join('\n')}\n`);
});
