/**
 * Kernel cases: one table serves correctness (here), benchmarks (test/bench) and the browser's self-test. Every case runs on the
 * adapter as it is and again with optional features disabled, because both paths ship.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OptionalFeature } from '../../engine/gpu/caps.ts';
import type { Device } from '../../engine/gpu/device.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import { viewAs } from '../../engine/gpu/device.ts';
import type { DType, Tensor, TypedArray } from '../../engine/gpu/tensor.ts';
import type { KernelWork } from '../../engine/ops/kernel-work.ts';
import { fromF16, toF16 } from '../../engine/util/f16.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { Rng } from '../../engine/util/rng.ts';
import { expectClose } from './compare.ts';
import { testDevice } from './device.ts';
import { unlessPassed } from './known-cases.ts';
import { THOROUGH } from './thorough.ts';

export interface TensorData {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly values: ArrayLike<number>;
}

export interface OutputSpec {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Contents before the run (for tensors that are updated); default NaN for f32, so that unwritten elements show. */
  readonly initial?: ArrayLike<number>;
}

export interface CaseData {
  readonly inputs: Readonly<Record<string, TensorData>>;
  readonly outputs: Readonly<Record<string, OutputSpec>>;
  /** Records the dispatches; `device` is there for packing weights. */
  run(rec: Recorder, tensors: Readonly<Record<string, Tensor>>, device: Device): void;
  /** Output name -> what the reference computes. */
  readonly expected: Readonly<Record<string, ArrayLike<number>>>;
}

export interface KernelCase {
  /** Reads as a sentence: "rms_norm handles 1 row of 65 columns". */
  readonly name: string;
  /** NMSE; default TOLERANCE, say why when it is larger. 0 = exact. */
  readonly tolerance?: number;
  build(rng: Rng): CaseData;
}

/** f32 data of a shape: normal values times `scale`. */
export function randomTensor(rng: Rng, shape: readonly number[], scale = 1): TensorData & { values: Float32Array } {
  const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
  for (let i = 0; i < values.length; i++) values[i] = rng.normal() * scale;
  return { dtype: 'f32', shape, values };
}

/** The same values after a round trip through half precision: what a kernel with f16 storage sees. */
export function roundToF16(values: ArrayLike<number>): Float32Array {
  return fromF16(toF16(values));
}

/** NMSE of f32. */
const TOLERANCE = 1e-7;
const GUARD_BYTES = 1024;
const GUARD_WORD = 0xdeadbeef;

/** An adapter as if it lacked something. */
interface Flavour {
  readonly title: string;
  readonly disable: readonly OptionalFeature[];
}

const AS_IT_IS = { title: 'all features', disable: [] } as const;
const NO_SUBGROUPS = { title: 'no subgroups', disable: ['subgroups'] } as const;
const AS_ON_A_GPU = { title: 'as on a GPU', disable: ['software'] } as const;

/** The adapter as it is, as one that lacks what kernels do without, and, but for a page's self-test, which is of the adapter at hand, with the kernels that GPUs get. */
export const FLAVOURS: readonly Flavour[] =
  globalThis.process === undefined ? [AS_IT_IS, NO_SUBGROUPS] : [AS_IT_IS, NO_SUBGROUPS, AS_ON_A_GPU];

/** The same for kernels that read weights, which lavapipe has in textures where they are in blocks. */
export const WEIGHT_FLAVOURS: readonly Flavour[] = [...FLAVOURS, { title: 'weights in buffers', disable: ['textures'] }];

/** The kernels of GPUs where WebGPU has no subgroups, as in Firefox. */
export const GPUS_WITHOUT_SUBGROUPS: readonly Flavour[] =
  globalThis.process === undefined ? [] : [{ title: 'as on a GPU, no subgroups', disable: ['software', 'subgroups'] }];

/** What an adapter does not run takes minutes to compile there for all cases: one case of so many is taken, and the first of each kernel. */
const SOME = THOROUGH ? 1 : 8;
/** Kernels for GPUs; in a page, which tests what its adapter runs, those for want of subgroups too. In Node they are tested in full. */
const IN_PART: readonly Flavour[] = globalThis.process === undefined ? [NO_SUBGROUPS] : [AS_ON_A_GPU];

/** Registers one test per case and flavour, on one device: what flavours share is compiled once. `every`: no case is left out for any. */
export function describeKernels(name: string, cases: readonly KernelCase[], { every = false, flavours = FLAVOURS } = {}): void {
  describe(name, () => {
    let device: Device;
    beforeAll(async () => {
      device = await testDevice();
    });
    afterAll(() => device.close());
    for (const flavour of flavours) {
      const { title, disable } = flavour;
      const taken = every || !IN_PART.includes(flavour) ? cases : cases.filter((one, i) => i % SOME === 0 || isFirst(one, i, cases));
      test.for(taken.map((c) => [c.name, c] as const))(`%s (${title})`, async ([, kernelCase], { skip }) => {
        const differs = device.pretend(disable);
        if (disable.length > 0 && !differs) skip('the adapter itself has none of what this leaves out');
        await runCase(device, kernelCase);
        expect(device.errors).toEqual([]);
      });
    }
  });
}

/** Random, but the same in every run. */
const dataOf = (one: KernelCase): CaseData => one.build(createRng(hash(one.name)));

/** Whether no case before it begins with the same word, which is the kernel's. */
function isFirst({ name }: KernelCase, index: number, cases: readonly KernelCase[]): boolean {
  const kernel = name.split(' ', 1)[0]!;
  return !cases.slice(0, index).some((other) => other.name.startsWith(`${kernel} `));
}

/** Puts the inputs of a case on the device; `output` makes an output. */
function allocate(
  device: Device,
  { inputs, outputs }: CaseData,
  output: (name: string, spec: OutputSpec) => Tensor,
): Record<string, Tensor> {
  const tensors: Record<string, Tensor> = {};
  for (const [name, { dtype, shape, values }] of Object.entries(inputs)) {
    tensors[name] = device.upload(name, dtype, shape, toTyped(dtype, values));
  }
  for (const [name, spec] of Object.entries(outputs)) tensors[name] = output(name, spec);
  return tensors;
}

/** Runs one case, unless it has passed before: outputs lie between guards that must survive, unwritten elements are NaN, errors are NMSE. */
export async function runCase(device: Device, kernelCase: KernelCase): Promise<void> {
  const data = dataOf(kernelCase);
  const arrays = Object.entries(data.expected).flatMap(([name, values]) => [name, Float64Array.from(values)]);
  const outputs = Object.entries(data.outputs).map(([name, { dtype, initial }]) => [name, dtype, initial === undefined]);
  await unlessPassed(
    device,
    { expected: [kernelCase.name, kernelCase.tolerance, outputs, ...arrays], isOfTable: true },
    (on) => outputsOf(on, kernelCase.name, data),
    (read) => judge(kernelCase, data, read),
  );
}

/** What a case leaves in an output. */
interface Left {
  readonly tensor: Tensor;
  /** With the guards around it. */
  readonly words: Uint32Array;
  /** Bytes that kernels have written to it by the table of their work; undefined if none has. */
  readonly claimed: number | undefined;
}

async function outputsOf(device: Device, label: string, data: CaseData): Promise<ReadonlyMap<string, Left>> {
  const tensors = allocate(device, data, (name, spec) => guarded(device, name, spec));
  const rec = device.record(label);
  const claimed = claims(device, rec, tensors);
  data.run(rec, tensors, device);
  rec.submit();
  const left = new Map<string, Left>();
  for (const name of Object.keys(data.outputs)) {
    const tensor = tensors[name]!;
    left.set(name, { tensor, words: await readGuarded(device, tensor), claimed: claimed.get(name) });
  }
  return left;
}

function judge(kernelCase: KernelCase, { outputs, expected }: CaseData, left: ReadonlyMap<string, Left>): void {
  for (const [name, { tensor, words, claimed }] of left) {
    const actual = withinGuards(tensor, words);
    const wanted = expected[name];
    if (!wanted) throw new Error(`${kernelCase.name}: no expected values for output ${name}`);
    if (outputs[name]!.initial === undefined && tensor.dtype === 'f32') {
      const written = 4 * (actual as Float32Array).reduce((sum, value) => sum + (Number.isNaN(value) ? 0 : 1), 0);
      // What was only copied to, no kernel has.
      expect(claimed ?? written, `${kernelCase.name} / ${name}: bytes that engine/ops/kernel-work.ts says are written`).toBe(written);
    }
    const values = tensor.dtype === 'f16' ? fromF16(actual as Uint16Array) : actual;
    expectClose(`${kernelCase.name} / ${name}`, values, wanted, kernelCase.tolerance ?? TOLERANCE);
  }
}

/** Bytes that the table of kernels' work says are written, by output. */
function claims(device: Device, rec: Recorder, tensors: Readonly<Record<string, Tensor>>): ReadonlyMap<string, number> {
  const claimed = new Map<string, number>();
  const { dispatch } = rec;
  rec.dispatch = (kernel, variant, bindings, params, workgroups) => {
    // A page carries no table: its devices have no counter.
    const counted = device.profiler.counter?.(kernel, variant, bindings, params, workgroups) as KernelWork | undefined;
    for (const [binding, bytes] of counted?.writes ?? []) {
      const { memory } = (bindings as Record<string, Tensor>)[binding]!;
      for (const [name, tensor] of Object.entries(tensors))
        if (tensor.memory === memory) claimed.set(name, (claimed.get(name) ?? 0) + bytes);
    }
    dispatch.call(rec, kernel, variant, bindings, params, workgroups);
  };
  return claimed;
}

function guarded(device: Device, name: string, { dtype, shape, initial }: OutputSpec): Tensor {
  const tensor = device.guardedTensor(name, dtype, shape, GUARD_BYTES);
  const words = new Uint32Array(tensor.buffer.size / 4).fill(GUARD_WORD);
  const inside = new Uint8Array(words.buffer, GUARD_BYTES, tensor.byteLength);
  const fill = initial ?? new Float32Array(tensor.size).fill(dtype === 'f32' || dtype === 'f16' ? NaN : 0x5a5a5a5a);
  const typed = toTyped(dtype, fill);
  inside.set(new Uint8Array(typed.buffer, typed.byteOffset, typed.byteLength));
  device.gpu.queue.writeBuffer(tensor.buffer, 0, words);
  return tensor;
}

/** All words of a tensor's buffer. */
async function readGuarded(device: Device, tensor: Tensor): Promise<Uint32Array> {
  const staging = device.gpu.createBuffer({ size: tensor.buffer.size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const encoder = device.gpu.createCommandEncoder();
  encoder.copyBufferToBuffer(tensor.buffer, 0, staging, 0, tensor.buffer.size);
  device.gpu.queue.submit([encoder.finish()]);
  await device.waits.until(staging.mapAsync(GPUMapMode.READ));
  const bytes = staging.getMappedRange().slice(0);
  staging.destroy();
  return new Uint32Array(bytes);
}

function withinGuards(tensor: Tensor, words: Uint32Array): TypedArray {
  for (let i = 0; i < words.length; i++) {
    const inGuard = i * 4 < GUARD_BYTES || i * 4 >= GUARD_BYTES + tensor.byteLength;
    if (inGuard && words[i] !== GUARD_WORD) throw new Error(`${tensor.label}: guard overwritten at byte ${i * 4 - GUARD_BYTES}`);
  }
  return viewAs(tensor.dtype, (words.buffer as ArrayBuffer).slice(GUARD_BYTES, GUARD_BYTES + tensor.byteLength), tensor.size);
}

function toTyped(dtype: DType, values: ArrayLike<number>): TypedArray {
  if (dtype === 'f16') return toF16(values);
  if (dtype === 'u32') return Uint32Array.from(values);
  if (dtype === 'i32') return Int32Array.from(values);
  return Float32Array.from(values);
}

function hash(text: string): number {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return h >>> 0;
}
