/** What is chosen by measurement: the types between ops, which offer it, and gpu/tuning.ts, which measures. */
import type { DType, Tensor, TypedArray } from './tensor.ts';

/** What a trial makes its tensors with: Device. */
export interface TrialDevice {
  tensor(label: string, dtype: DType, shape: readonly number[]): Tensor;
  upload(label: string, dtype: DType, shape: readonly number[], data: TypedArray): Tensor;
}

/** Work that can be done in several ways with the same bits. */
export interface Tunable<Recorder> {
  /** The class of shapes that shares a choice; part of the key in the cache. */
  readonly key: string;
  /** Names; the first is what is done without a measurement, which the self-test has compared with plain loops. */
  readonly candidates: readonly string[];
  /** How often each is done for a measurement. */
  readonly repeats: number;
  /** What this piece of work of the class reads most of. */
  readonly weight: Tensor;
  /** Something of this class to do, with inputs that tell right from wrong, which reads one of `weights`: those of several pieces of work. */
  make(device: TrialDevice, weights: readonly Tensor[]): Trial<Recorder>;
}

export interface Trial<Recorder> {
  /** Does it with the weights whose turn it is. */
  record(rec: Recorder, candidate: string, turn: number): void;
  readonly out: Tensor;
  /** Everything that was made for it. */
  readonly tensors: readonly Tensor[];
}

/** How one choice came about. */
export interface Choice {
  readonly chosen: string;
  /** Measured times, in microseconds; absent = from the cache. */
  readonly microseconds?: Readonly<Record<string, number>>;
  /** Candidates whose bits differed: a bug, which must not win. */
  readonly wrong?: readonly string[];
}

/** Takes offers, and settles them: Tuning. */
export interface Chooser<Recorder> {
  readonly choices: ReadonlyMap<string, Choice>;
  /** Whether something waits to be measured. */
  readonly hasOffers: boolean;
  offer(tunable: Tunable<Recorder>): void;
  settle(): Promise<void>;
}
