/**
 * Kernel cases that need not run again, since all that they would ask of the adapter is what they asked when they passed. What a case asks are the bytes that it uploads, and of each
 * dispatch the WGSL, the variant, the tensors, the parameters and the grid; the digest of these, of what is expected and of the adapter is written down where a case has
 * passed (`PARLEY_TABLE=write`). A change of a kernel or of the code that dispatches it changes the digests of its cases, which then run. The weekly run runs all.
 *
 * This is a setup file of the kernel cases in Node.
 */
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { afterAll, expect } from 'vitest';
import { assembleWgsl, variantLabel } from '../../engine/gpu/kernel.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { Recorder } from '../../engine/gpu/recorder.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { GUARD_BYTES, allocate, useKnownCases } from './kernel-case.ts';
import type { CaseData } from './kernel-case.ts';
import { THOROUGH } from './thorough.ts';

const FOLDER = new URL('../fixtures/passed-cases/', import.meta.url);
const isWriting = process.env['PARLEY_TABLE'] === 'write';
/** A change of how results are judged, of how work comes to the adapter, or of the library that compiles WGSL, makes all cases run. */
const judges = createHash('sha256');
for (const path of [
  'test/support/kernel-case',
  'test/support/compare',
  ...['params', 'pipeline-cache', 'recorder', 'step', 'tensor'].map((name) => `engine/gpu/${name}`),
])
  judges.update(readFileSync(new URL(`../../${path}.ts`, import.meta.url)));
judges.update(readFileSync(new URL('../../node_modules/webgpu/package.json', import.meta.url)));
const judged = judges.digest('hex');
const shaders = createNodePlatform().shaders();

/** Adds numbers and texts to a hash, and arrays by their bytes. */
function add(hash: Hash, ...parts: readonly unknown[]): void {
  for (const part of parts)
    hash.update(ArrayBuffer.isView(part) ? new Uint8Array(part.buffer, part.byteOffset, part.byteLength) : `${JSON.stringify(part)}\n`);
}

/** The recorders of a case write down what they are asked instead of asking the adapter. */
class Digest {
  readonly #hash = createHash('sha256');
  readonly #device: Device;
  readonly #shaders: ReadonlyMap<string, string>;
  /** Buffers and textures in the order in which they appear. */
  readonly #memories = new Map<object, number>();

  constructor(device: Device, shaders: ReadonlyMap<string, string>) {
    this.#device = device;
    this.#shaders = shaders;
    add(this.#hash, judged, device.info, process.env['GALLIVM_PERF'] ?? '');
  }

  of(data: CaseData, tolerance: number): string {
    const device = this.#device;
    add(this.#hash, tolerance);
    const arrays = [
      ...Object.entries(data.expected),
      ...Object.entries(data.outputs).map(([name, { initial }]) => [name, initial] as const),
    ];
    for (const [name, values] of arrays)
      add(this.#hash, name, Array.isArray(values) ? Float64Array.from(values as number[]) : (values ?? 0));
    device.measure(() =>
      this.#instead(() => {
        const tensors = allocate(device, data, (name, { dtype, shape }) => device.guardedTensor(name, dtype, shape, GUARD_BYTES));
        add(
          this.#hash,
          Object.entries(tensors).map(([name, tensor]) => [name, this.#tensor(tensor)]),
        );
        data.run(this.#recorder('case'), tensors, device);
      }),
    );
    return this.#hash.digest('base64url').slice(0, 12);
  }

  /** While `body` runs, the device's own recorders and writes go into the hash too. */
  #instead(body: () => void): void {
    const own: Pick<Device, 'record' | 'write' | 'destroy' | 'capture'> = {
      record: (label) => this.#recorder(label),
      write: (tensor, data, ...first) => add(this.#hash, 'write', this.#tensor(tensor), first, data),
      // What is made for a measurement is nothing.
      destroy: () => undefined,
      capture: () => {
        throw new Error('a case with a plan has no digest');
      },
    };
    Object.assign(this.#device, own);
    try {
      body();
    } finally {
      for (const name of Object.keys(own)) Reflect.deleteProperty(this.#device, name);
    }
  }

  #recorder(label: string): Recorder {
    const rec = new Recorder(this.#device, label, undefined as never, 'record', () => undefined);
    const tensors = (all: object): unknown[] =>
      Object.entries(all as Record<string, Tensor>).map(([name, tensor]) => [name, this.#tensor(tensor)]);
    rec.dispatch = (kernel, variant, bindings, params, workgroups) => {
      const { bindings: declared, params: fields } = kernel.spec;
      const text = assembleWgsl(kernel, variant, this.#shaders);
      // The case compares what this says is written.
      const work = this.#device.profiler.counter?.(kernel, variant, bindings, params, workgroups);
      add(this.#hash, variantLabel(kernel, variant), text, declared, fields, variant, tensors(bindings), params, workgroups, work);
    };
    rec.copy = (from, to, ...bytes) => add(this.#hash, 'copy', tensors({ from, to }), bytes);
    rec.fill = (from, to, first) => add(this.#hash, 'fill', tensors({ from, to }), first ?? 0);
    rec.spill = (from, to) => add(this.#hash, 'spill', tensors({ from, to }));
    rec.copyTexels = (from, to) => add(this.#hash, 'texels', tensors({ from, to }));
    rec.submit = () => {
      add(this.#hash, 'submit');
      return { finished: () => Promise.resolve() };
    };
    for (const name of ['readback', 'replay', 'freeze'] as const)
      rec[name] = () => {
        throw new Error('a case that reads on its way has no digest');
      };
    return rec;
  }

  #tensor({ memory, dtype, shape, offset, texture }: Tensor): unknown {
    const known = this.#memories.get(memory) ?? this.#memories.size;
    this.#memories.set(memory, known);
    return [known, dtype, shape, offset, texture?.format];
  }
}

/** What a case would ask of a device, and what it expects: equal digests mean equal results. Throws where that is not known beforehand. */
export async function digestOf(device: Device, data: CaseData, tolerance = 0, texts?: ReadonlyMap<string, string>): Promise<string> {
  return new Digest(device, texts ?? (await shaders)).of(data, tolerance);
}

/** The digests of the test file that runs. */
const path = new URL(`${basename(expect.getState().testPath!, '.test.ts')}.txt`, FOLDER);
const written = new Set(existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []);
const passed = new Set<string>();

useKnownCases({
  digest: async (device, data, tolerance) => {
    try {
      return await digestOf(device, data, tolerance);
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
  if (isWriting && passed.size > 0) writeFileSync(path, `${[...passed].sort().join('\n')}\n`);
});
