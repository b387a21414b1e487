/** Runs batches on the ranks of a split model. */
import type { BlockTable } from '../cache/block-table.ts';
import { EngineError, assert, engineClosing } from '../errors.ts';
import type { DeviceStats } from '../gpu/caps.ts';
import { LOGPROB_WORDS } from '../ops/logits.ts';
import { parseLogprobs } from '../runner/logit-processors.ts';
import type { TokenLogprobs } from '../runner/logit-processors.ts';
import type { StepResult } from '../runner/model-runner.ts';
import { StepEncoder } from '../runner/step-encoder.ts';
import type { Batch } from '../scheduler/batch.ts';
import type { GroupMemory } from './group-memory.ts';
import type { GroupSizes, StepPlace } from './group-memory.ts';
import { microBatches } from './micro-batches.ts';
import type { MicroBatch } from './micro-batches.ts';
import type { RankKernels } from './rank-operations.ts';
import type { RankPort } from './rank-port.ts';
import type { Signals } from './signals.ts';

/** Result of one micro-batch. */
interface Outcome {
  readonly rows: readonly number[];
  readonly tokens: Uint32Array;
  readonly logprobs: readonly (TokenLogprobs | undefined)[] | undefined;
}

export interface ParallelParts {
  readonly ranks: readonly RankPort[];
  readonly sizes: GroupSizes;
  readonly memory: GroupMemory;
  /** Signals of the group, which end every rank's waiting when one is lost. */
  readonly signals: Signals;
  readonly table: BlockTable;
  readonly pageSize: number;
  /** Counters of the engine's own device; pending steps and progress are recorded there for the watchdog. */
  readonly stats: DeviceStats;
  /** Self-tests passed and kernels chosen by the ranks. */
  readonly kernels: RankKernels;
}

/** Runs batches on all ranks of a split model, in the place of ModelRunner. */
export class ParallelRunner {
  readonly #parts: ParallelParts;
  readonly #encoder: StepEncoder;
  /** Number of the last step; wraps at 32 bits, as the ranks' Signals do. */
  #steps = 0;
  /** Index of the next step's place in the group's memory. */
  #place = 0;
  /** Number of the step that sampled the last token of each row of the block table. */
  readonly #sampledIn: Int32Array;
  readonly #busy: boolean[];
  #failure: EngineError | undefined;
  /** Resolves once every rank has room for logit processing. */
  #reserved: Promise<unknown> | undefined;
  #resolveLost!: (reason: string) => void;
  /** Resolves with the reason when a rank is lost or fails; no batch runs after that. */
  readonly lost = new Promise<string>((resolve) => (this.#resolveLost = resolve));

  constructor(parts: ParallelParts) {
    this.#parts = parts;
    const { ranks, sizes, table, pageSize } = parts;
    this.#encoder = new StepEncoder(table, pageSize, sizes.limits);
    this.#sampledIn = new Int32Array(sizes.limits.maxRunning);
    this.#busy = parts.memory.places.map(() => false);
    ranks.forEach((rank, i) => void rank.lost.then((reason) => this.#fail(i, reason)));
  }

  /** Starts a batch on all ranks; its tokens are read later. Throws EngineError('device_lost') after a rank was lost. */
  run(batch: Batch): StepResult {
    if (this.#failure) throw this.#failure;
    const outcomes = Promise.all(microBatches(batch, this.#parts.sizes.ppSize).map((part) => this.#start(part)));
    // A step may fail after nobody waits for it any more.
    outcomes.catch(() => undefined);
    const count = batch.sampled.length;
    const tokens = async (): Promise<Uint32Array> => {
      const all = new Uint32Array(count);
      for (const { rows, tokens: some } of await outcomes) rows.forEach((row, i) => (all[row] = some[i]!));
      return all;
    };
    if (batch.sampled.every(({ sequence }) => sequence.sampling.logits?.logprobs === undefined)) return { tokens };
    const logprobs = async (): Promise<readonly (TokenLogprobs | undefined)[]> => {
      const all = Array<TokenLogprobs | undefined>(count).fill(undefined);
      for (const { rows, logprobs: some } of await outcomes) rows.forEach((row, i) => (all[row] = some?.[i]));
      return all;
    };
    return { tokens, logprobs };
  }

  /** As ModelRunner's, on all ranks. A thread answers between steps, so it is asked until it has room. */
  async reserveProcessing(): Promise<void> {
    this.#reserved ??= Promise.all(this.#parts.ranks.map((rank) => rank.reserveProcessing()));
    try {
      await this.#reserved;
    } catch (error) {
      this.#reserved = undefined;
      throw error;
    }
  }

  get kernels(): RankKernels {
    return this.#parts.kernels;
  }

  /** Counters of the ranks' devices, as of their last replies. */
  get stats(): readonly DeviceStats[] {
    return this.#parts.ranks.flatMap(({ stats }) => stats ?? []);
  }

  async close(): Promise<void> {
    this.#failure ??= engineClosing();
    this.#parts.signals.fail();
    await Promise.all(this.#parts.ranks.map((rank) => rank.close()));
  }

  async #start({ batch, rows }: MicroBatch): Promise<Outcome> {
    const { ranks, memory, stats } = this.#parts;
    const number = this.#place;
    this.#place = (number + 1) % memory.places.length;
    assert(!this.#busy[number], `step ${this.#steps} finds its place taken`);
    this.#busy[number] = true;
    const place = memory.places[number]!;
    this.#encode(batch, place);
    stats.pending++;
    try {
      await Promise.all(ranks.map((rank, i) => this.#step(rank, i, number)));
    } finally {
      stats.pending--;
      stats.lastProgress = performance.now();
      this.#busy[number] = false;
    }
    return this.#outcome(batch, rows, place);
  }

  #encode(batch: Batch, { input }: StepPlace): void {
    const step = (this.#steps = (this.#steps + 1) | 0);
    this.#encoder.encode(batch, input);
    const needed = [...batch.decodes, ...batch.prefills]
      .filter(({ fromDevice }) => fromDevice)
      .map(({ sequence }) => this.#sampledIn[sequence.row]!);
    input.set('step', step);
    // The previous step in this place is over, so waiting for it costs nothing. Counts wrap, so the latest is the one nearest to `step`.
    const over = (step - this.#busy.length) | 0;
    input.set(
      'after',
      needed.reduce((latest, other) => (((other - latest) | 0) > 0 ? other : latest), over),
    );
    for (const { sequence } of batch.sampled) this.#sampledIn[sequence.row] = step;
  }

  async #step(rank: RankPort, index: number, place: number): Promise<void> {
    try {
      await rank.step(place);
    } catch (error) {
      this.#fail(index, error instanceof Error ? error.message : String(error));
      throw this.#failure;
    }
  }

  #outcome(batch: Batch, rows: readonly number[], { input, tokens, logprobs }: StepPlace): Outcome {
    const count = batch.sampled.length;
    const reported = input.get('processed') === 0 ? 0 : input.get('reported');
    const outcome = { rows, tokens: tokens.slice(0, count) };
    if (reported === 0) return { ...outcome, logprobs: undefined };
    const data = logprobs.bytes.slice(0, reported * LOGPROB_WORDS * 4).buffer;
    return {
      ...outcome,
      logprobs: parseLogprobs(input.reported.slice(0, reported), batch.sampled, data, this.#parts.sizes.limits.vocabulary),
    };
  }

  /** Fails the group. Only the first rank's reason counts, since the others fail because of it. */
  #fail(rank: number, reason: string): void {
    if (this.#failure) return;
    this.#failure = new EngineError('device_lost', `rank ${rank} of a split model failed: ${reason}`);
    this.#parts.signals.fail();
    this.#resolveLost(this.#failure.message);
  }
}
