import type { BufferOwner } from './buffer-owner.ts';
import type { Kernel, Variant } from './kernel.ts';
import { encodeCopy } from './step.ts';
import type { DispatchStep, Step, StepWork } from './step.ts';
import type { Tensor } from './tensor.ts';

/** GPU time of one pipeline over all profiled submissions. */
export interface ProfileRow {
  readonly label: string;
  readonly count: number;
  readonly milliseconds: number;
  /** Start (relative to the first dispatch of all) and duration of each dispatch that is kept, in microseconds. */
  readonly spans: readonly (readonly [start: number, length: number])[];
  /** Total work of the dispatches; absent if it is not counted. */
  readonly work?: StepWork;
}

/** Counts what a dispatch reads, writes and computes. */
export type WorkCounter = (
  kernel: Kernel,
  variant: Variant,
  bindings: Readonly<Record<string, Tensor>>,
  params: Readonly<Record<string, number>>,
  workgroups: readonly number[],
) => StepWork;

const MAX_QUERIES = 4096;
/** Most dispatches, over all kernels, whose times are kept individually. */
const MAX_SPANS = 2 ** 16;

interface Total {
  count: number;
  nanoseconds: number;
  readonly spans: (readonly [start: number, length: number])[];
  work: StepWork | undefined;
}

/** Times every dispatch by timestamp queries. Each dispatch then has a pass of its own, so a profiled step is slower than a normal one. Off by default. */
export class Profiler {
  /** Called as dispatches are recorded, and once for each of a plan. */
  counter: WorkCounter | undefined;
  readonly #device: BufferOwner;
  readonly #totals = new Map<string, Total>();
  /** Timestamp of the first dispatch, and the number of spans kept. */
  #origin: bigint | undefined;
  #spans = 0;
  #enabled = false;
  #queries: GPUQuerySet | undefined;
  #resolve: GPUBuffer | undefined;
  #timed: DispatchStep[] = [];
  /** Settles when the timestamps of all submissions are read. */
  #pending = Promise.resolve();

  constructor(device: BufferOwner) {
    this.#device = device;
  }

  get enabled(): boolean {
    return this.#enabled;
  }

  /** Switches profiling on or off; returns false if the adapter has no timestamp queries. */
  enable(on: boolean): boolean {
    this.#enabled = on && this.#device.caps.timestamps;
    if (this.#enabled && !this.#queries) {
      this.#queries = this.#device.gpu.createQuerySet({ type: 'timestamp', count: MAX_QUERIES });
      this.#resolve = this.#device.createBuffer('timestamps', MAX_QUERIES * 8, GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC);
    }
    return this.#enabled;
  }

  /** Encodes steps with one timed pass per dispatch; dispatches beyond the query set run untimed. */
  encode(encoder: GPUCommandEncoder, steps: readonly Step[]): void {
    this.#timed = [];
    for (const step of steps) {
      if (step.kind !== 'dispatch') {
        encodeCopy(encoder, step);
        continue;
      }
      const index = this.#timed.length * 2;
      const timed = index + 1 < MAX_QUERIES;
      const timestampWrites = { querySet: this.#queries!, beginningOfPassWriteIndex: index, endOfPassWriteIndex: index + 1 };
      const pass = encoder.beginComputePass(timed ? { timestampWrites } : {});
      if (timed) this.#timed.push(step);
      pass.setPipeline(step.pipeline);
      pass.setBindGroup(0, step.group, step.offsets as number[]);
      pass.dispatchWorkgroups(step.x, step.y, step.z);
      pass.end();
    }
  }

  /** Reads the timestamps of the submission that was just made. */
  collect(): void {
    const steps = this.#timed;
    if (steps.length === 0) return;
    const { gpu, waits } = this.#device;
    const bytes = steps.length * 16;
    const staging = gpu.createBuffer({ size: bytes, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = gpu.createCommandEncoder();
    encoder.resolveQuerySet(this.#queries!, 0, steps.length * 2, this.#resolve!, 0);
    encoder.copyBufferToBuffer(this.#resolve!, 0, staging, 0, bytes);
    gpu.queue.submit([encoder.finish()]);
    const take = (): void => {
      this.#add(steps, new BigUint64Array(staging.getMappedRange()));
      staging.destroy();
    };
    const earlier = this.#pending;
    const read = waits.until(staging.mapAsync(GPUMapMode.READ)).then(take);
    // A lost device has no times. Whoever waits for the step is told that it is lost.
    this.#pending = read.catch(() => undefined).then(() => earlier);
  }

  /** Adds the start and end of each of a submission's dispatches. */
  #add(steps: readonly DispatchStep[], stamps: BigUint64Array): void {
    steps.forEach(({ label, work }, i) => {
      const row: Total = this.#totals.get(label) ?? { count: 0, nanoseconds: 0, spans: [], work: undefined };
      const [from, to] = [stamps[2 * i]!, stamps[2 * i + 1]!];
      const nanoseconds = Number(to - from);
      this.#origin ??= from;
      row.count++;
      row.nanoseconds += nanoseconds;
      if (work) row.work = row.work ? sum(row.work, work) : work;
      if (this.#spans++ < MAX_SPANS) row.spans.push([Number(from - this.#origin) / 1e3, nanoseconds / 1e3]);
      this.#totals.set(label, row);
    });
  }

  /** Returns the rows, longest time first, and clears them. */
  async report(): Promise<ProfileRow[]> {
    await this.#pending;
    const rows = [...this.#totals].map(([label, { count, nanoseconds, spans, work }]) => ({
      label,
      count,
      milliseconds: nanoseconds / 1e6,
      spans,
      ...(work && { work }),
    }));
    this.#totals.clear();
    [this.#origin, this.#spans] = [undefined, 0];
    return rows.sort((a, b) => b.milliseconds - a.milliseconds);
  }
}

function sum(a: StepWork, b: StepWork): StepWork {
  return {
    read: a.read + b.read,
    written: a.written + b.written,
    operations: a.operations + b.operations,
    readAPosition: a.readAPosition + b.readAPosition,
    operationsAPosition: a.operationsAPosition + b.operationsAPosition,
  };
}
