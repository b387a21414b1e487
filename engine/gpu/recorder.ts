import { assert } from '../errors.ts';
import { ceilDiv } from '../util/math.ts';
import type { BufferOwner } from './buffer-owner.ts';
import type { Caps } from './caps.ts';
import type { BindingsOf, Kernel, KernelSpec, ParamsOf, Variant } from './kernel.ts';
import { variantLabel } from './kernel.ts';
import type { ParamsStore } from './params.ts';
import type { PipelineCache } from './pipeline-cache.ts';
import type { Profiler } from './profiler.ts';
import type { Readback, StagingRing } from './staging.ts';
import { encodeCopy, texelRows } from './step.ts';
import type { Step } from './step.ts';
import { TEXEL_BYTES, TEXEL_ROW } from './tensor.ts';
import type { DType, Tensor } from './tensor.ts';
import type { Chooser } from './tunable.ts';

/** A captured sequence of dispatches with its own params: replayed without running the JavaScript that made it. */
export interface Plan {
  readonly label: string;
  readonly steps: readonly Step[];
}

export interface Submission {
  /** Resolves when the device has done the work. This costs a promise, so steps wait for their readback instead. */
  finished(): Promise<void>;
}

/** WebGPU's limit on workgroups in one dimension of a grid. */
export const MAX_WORKGROUPS = 65535;

/** Folds rows of workgroups into y and z of a grid. Kernels compute their row as y + z * num_workgroups.y, and check its bound. */
export function foldedRows(rows: number): readonly [number, number] {
  const slabs = Math.max(1, ceilDiv(rows, MAX_WORKGROUPS));
  return [ceilDiv(rows, slabs), slabs];
}

/** The parts of a device that a recording uses. */
export interface RecordingDevice extends BufferOwner {
  readonly pipelines: PipelineCache;
  readonly staging: StagingRing;
  readonly profiler: Profiler;
  /** The autotune, to which ops offer candidates in dry recordings. */
  readonly tuning: Chooser<Recorder> | undefined;
  /** Device.scratch. */
  scratch(label: string, dtype: DType, size: number): Tensor;
  scratchTexels(label: string, texels: number, dtype?: 'u32' | 'f32'): Tensor;
}

/**
 * Collects one step and submits it as one command buffer with as few compute passes as its copies allow. `dry` only
 * starts compilations; `capture` makes a Plan.
 */
export class Recorder {
  readonly caps: Caps;
  readonly device: RecordingDevice;
  readonly label: string;
  readonly mode: 'record' | 'dry' | 'capture';
  /** Labels of the pipelines that a dry recording has requested. */
  readonly variants = new Set<string>();
  readonly #params: ParamsStore;
  readonly #release: () => void;
  readonly #steps: Step[] = [];
  #ran: Set<string> | undefined;
  #open = true;

  constructor(device: RecordingDevice, label: string, params: ParamsStore, mode: 'record' | 'dry' | 'capture', release: () => void) {
    this.device = device;
    this.caps = device.caps;
    this.label = label;
    this.mode = mode;
    this.#params = params;
    this.#release = release;
  }

  /** From here on, skips dispatches of pipelines in `ran`, and adds the others to it. For warm-ups, whose results nobody reads. */
  leaveOut(ran: Set<string>): void {
    this.#ran = ran;
  }

  /**
   * Appends one dispatch. `workgroups` is [x, y?, z?]; an x above 65,535 is folded into y, and kernels that allow it read their
   * number with workgroup_index() of lib/grid.wgsl and check their bounds.
   */
  dispatch<S extends KernelSpec>(
    kernel: Kernel<S>,
    variant: Variant,
    bindings: BindingsOf<S>,
    params: ParamsOf<S>,
    workgroups: readonly number[],
  ): void {
    const { pipelines } = this.device;
    assert(!variant.subgroups || this.caps.subgroups, `${kernel.name}: a variant with subgroups on an adapter without`);
    if (this.mode === 'dry') {
      this.variants.add(pipelines.compile(kernel, variant));
      return;
    }
    if (this.#ran) {
      const name = variantLabel(kernel, variant);
      if (this.#ran.has(name)) return;
      this.#ran.add(name);
    }
    let [x = 1, y = 1] = workgroups;
    const z = workgroups[2] ?? 1;
    if (x * y * z === 0) return;
    if (x > MAX_WORKGROUPS) {
      assert(y === 1, `${kernel.name}: ${x} workgroups in x leave no room for ${y} in y`);
      y = Math.ceil(x / MAX_WORKGROUPS);
      x = Math.ceil(x / y);
    }
    assert(y <= MAX_WORKGROUPS && z <= MAX_WORKGROUPS, `${kernel.name}: workgroups [${x}, ${y}, ${z}] exceed ${MAX_WORKGROUPS}`);
    const slot = this.#params.allocate(kernel.spec.params, params);
    const group = pipelines.bindGroup(kernel, bindings, slot);
    const { profiler } = this.device;
    const label = profiler.enabled ? variantLabel(kernel, variant) : kernel.name;
    // The work of a plan is counted now, since it may be profiled later.
    const work =
      profiler.enabled || this.mode === 'capture' ? profiler.counter?.(kernel, variant, bindings, params, workgroups) : undefined;
    this.#steps.push({
      kind: 'dispatch',
      label,
      pipeline: pipelines.pipeline(kernel, variant),
      group,
      offsets: [slot.offset],
      x,
      y,
      z,
      work,
    });
  }

  /** Copies bytes between tensors (default: all of `from`). */
  copy(from: Tensor, to: Tensor, bytes = from.byteLength, fromByte = 0, toByte = 0): void {
    if (this.mode === 'dry') return;
    assert(
      fromByte + bytes <= from.byteLength && toByte + bytes <= to.byteLength,
      `copy ${from.label} -> ${to.label}: ${bytes} bytes do not fit`,
    );
    this.#steps.push({
      kind: 'copy', from: from.buffer, fromByte: from.offset + fromByte, to: to.buffer, toByte: to.offset + toByte, bytes,
    }); // prettier-ignore
  }

  /** Copies all of a tensor into one that lies in a texture, from its texel `first` on, which begins a row of texels; whole rows, or up to its end. */
  fill(from: Tensor, to: Tensor, first = 0): void {
    if (this.mode === 'dry') return;
    const texture = to.texture!;
    const texels = from.byteLength / TEXEL_BYTES;
    assert(first % TEXEL_ROW === 0 && first + texels <= texture.width * texture.height, `fill ${to.label}: ${texels} texels at ${first}`);
    const at = { buffer: from.buffer, byte: from.offset, texture, firstRow: first / TEXEL_ROW };
    this.#steps.push(...texelRows('fill', texels, at));
  }

  /** Copies as many texels as `to` has room for, from the first on, out of a tensor that lies in a texture. */
  spill(from: Tensor, to: Tensor): void {
    if (this.mode === 'dry') return;
    const texels = to.byteLength / TEXEL_BYTES;
    assert(Number.isInteger(texels) && to.byteLength <= from.byteLength, `spill ${from.label}: ${texels} texels`);
    this.#steps.push(...texelRows('spill', texels, { buffer: to.buffer, byte: to.offset, texture: from.texture!, firstRow: 0 }));
  }

  /** Copies all of a tensor that lies in a texture to the start of another, of rows of texels as long where it has several. */
  copyTexels(from: Tensor, to: Tensor): void {
    if (this.mode === 'dry') return;
    const [old, more] = [from.texture!, to.texture!];
    assert(
      (old.height === 1 ? old.width <= more.width : old.width === more.width) && old.height <= more.height,
      `copy ${from.label} -> ${to.label}: ${old.height} rows of ${old.width} texels do not fit`,
    );
    this.#steps.push({ kind: 'texels', from: old, to: more });
  }

  /** Appends a copy to a staging buffer; call `data()` after submit. */
  readback(tensor: Tensor, bytes = tensor.byteLength, fromByte = 0): Readback {
    if (this.mode === 'dry') return { data: () => Promise.resolve(new ArrayBuffer(bytes)), into: () => Promise.resolve() };
    assert(this.mode === 'record', 'a plan cannot hold a readback');
    const { buffer, readback } = this.device.staging.take(tensor, bytes);
    this.#steps.push({ kind: 'copy', from: tensor.buffer, fromByte: tensor.offset + fromByte, to: buffer, toByte: 0, bytes });
    return readback;
  }

  /** Appends the dispatches of a captured plan. */
  replay(plan: Plan): void {
    if (this.mode === 'dry') return;
    for (const step of plan.steps) this.#steps.push(step);
  }

  /** Ends a capture and returns its plan. */
  freeze(): Plan {
    assert(this.mode === 'capture' && this.#open, 'freeze ends a capture, once');
    this.#open = false;
    this.#params.flush();
    return { label: this.label, steps: this.#steps };
  }

  /** Encodes and submits everything; the recorder is used up. */
  submit(): Submission {
    assert(this.#open && this.mode !== 'capture', `recorder ${this.label} was submitted already`);
    this.#open = false;
    const { gpu, stats, waits, profiler } = this.device;
    if (this.mode === 'dry') return { finished: () => Promise.resolve() };
    this.#params.flush();
    const encoder = gpu.createCommandEncoder({ label: this.label });
    if (profiler.enabled) profiler.encode(encoder, this.#steps);
    else encode(encoder, this.#steps);
    gpu.queue.submit([encoder.finish()]);
    stats.submits++;
    for (const step of this.#steps) if (step.kind === 'dispatch') stats.dispatches++;
    this.#release();
    if (profiler.enabled) profiler.collect();
    return {
      finished: async () => {
        stats.pending++;
        try {
          await waits.until(gpu.queue.onSubmittedWorkDone());
          stats.lastProgress = performance.now();
        } finally {
          stats.pending--;
        }
      },
    };
  }
}

function encode(encoder: GPUCommandEncoder, steps: readonly Step[]): void {
  let pass: GPUComputePassEncoder | undefined;
  let pipeline: GPUComputePipeline | undefined;
  for (const step of steps) {
    if (step.kind !== 'dispatch') {
      pass?.end();
      pass = undefined;
      pipeline = undefined;
      encodeCopy(encoder, step);
      continue;
    }
    pass ??= encoder.beginComputePass();
    if (step.pipeline !== pipeline) {
      pass.setPipeline(step.pipeline);
      pipeline = step.pipeline;
    }
    pass.setBindGroup(0, step.group, step.offsets as number[]);
    pass.dispatchWorkgroups(step.x, step.y, step.z);
  }
  pass?.end();
}
