/** The types of the autotune: ops offer work that can be done in several ways, and gpu/tuning.ts measures which is the fastest. */
import type { DType, Tensor, TypedArray } from './tensor.ts';

/** The part of a Device with which a trial makes its tensors. */
export interface TrialDevice {
  tensor(label: string, dtype: DType, shape: readonly number[]): Tensor;
  upload(label: string, dtype: DType, shape: readonly number[], data: TypedArray): Tensor;
}

/** Work that several candidates do with the same bits. */
export interface Tunable<Recorder> {
  /** Work with the same key shares a choice, which the cache keeps under it. */
  readonly key: string;
  /** Names of the candidates. The first is the default, which the self-test has compared with plain loops. */
  readonly candidates: readonly string[];
  /** How often each candidate runs in a measurement. */
  readonly repeats: number;
  /** The weight that this work reads. */
  readonly weight: Tensor;
  /** A trial with inputs that tell right from wrong. `weights` are those of all work that was offered under this key; each run reads one of them. */
  make(device: TrialDevice, weights: readonly Tensor[]): Trial<Recorder>;
}

export interface Trial<Recorder> {
  /** Records one run by a candidate; `turn` counts the runs, and picks the weight. */
  record(rec: Recorder, candidate: string, turn: number): void;
  readonly out: Tensor;
  /** Everything that was made for the trial, `out` included. */
  readonly tensors: readonly Tensor[];
}

/** A choice, and what it was made by. */
export interface Choice {
  readonly chosen: string;
  /** Microseconds of a run, by candidate; absent where the choice comes from the cache. */
  readonly microseconds?: Readonly<Record<string, number>>;
  /** Candidates whose bits differed: that is a bug, and they cannot be chosen. */
  readonly wrong?: readonly string[];
}

/** The side of Tuning that ops and the warm-up see. */
export interface Chooser<Recorder> {
  readonly choices: ReadonlyMap<string, Choice>;
  /** Whether any offer still has to be measured. */
  readonly hasOffers: boolean;
  offer(tunable: Tunable<Recorder>): void;
  settle(): Promise<void>;
}
