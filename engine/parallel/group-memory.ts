/** The memory that the ranks of a split model share: step inputs, results and exchanged parts, laid out in one (Shared)ArrayBuffer. */
import { LOGPROB_WORDS } from '../ops/logits.ts';
import { candidateWords } from '../ops/shard-sample.ts';
import { StepInput } from '../runner/step-input.ts';
import type { StepLimits } from '../runner/step-input.ts';
import { alignUp } from '../util/math.ts';
import { ShardLayout } from './shard-layout.ts';
import { SharedSignals } from './signals.ts';

/** How a model is split: tensor-parallel ranks per stage (`tpSize`) and pipeline stages of consecutive layers (`ppSize`). */
export interface Topology {
  readonly tpSize: number;
  readonly ppSize: number;
}

export interface GroupSizes extends Topology {
  readonly limits: StepLimits;
  /** Channels of the hidden state. */
  readonly hidden: number;
}

/** A stretch of memory as bytes, f32 and u32. */
export interface Part {
  readonly bytes: Uint8Array;
  readonly floats: Float32Array;
  readonly words: Uint32Array;
}

/** Memory of one step in flight; it is reused once the last stage has completed the step. */
export interface StepPlace {
  readonly input: StepInput;
  readonly tokens: Uint32Array;
  /** LOGPROB_WORDS words per reported row, in the layout of ops/logits.ts. */
  readonly logprobs: Part;
  /** Hidden state that each stage but the last hands on, by stage. */
  readonly handOvers: readonly Part[];
}

/** Signal that counts completed steps. */
export const COMPLETED = 0;
/** Signal that counts the ranks' arrivals at exchanges of a stage. */
export const arrivals = (stage: number): number => 1 + stage;
/** Signal that counts the hidden states that a stage has handed on. */
export const handOvers = ({ ppSize }: Topology, stage: number): number => 1 + ppSize + stage;
/** Number of signals of a group. */
export const counterCount = ({ ppSize }: Topology): number => 1 + 2 * ppSize;

/** Most steps in flight: two batches (one is submitted ahead), each split into a micro-batch per stage. */
const stepPlaces = ({ ppSize }: Topology): number => 2 * ppSize;

/** Sets of parts, which exchanges use in turn. */
const SETS = 2;

export class GroupMemory {
  readonly places: readonly StepPlace[];
  /** Last sampled token by row of the block table, and one more word for padding. */
  readonly lastTokens: Uint32Array;
  readonly signals: Int32Array;
  /** [stage][set][rank]. */
  readonly parts: readonly (readonly (readonly Part[])[])[];

  constructor(sizes: GroupSizes, buffer: ArrayBufferLike) {
    const { tpSize, ppSize, limits } = sizes;
    let at = 0;
    const take = (bytes: number): Part => {
      const part = partAt(buffer, at, bytes);
      at += alignUp(bytes, 64);
      return part;
    };
    const { hiddenBytes, partBytes, logprobBytes, sampledRows } = byteSizes(sizes);
    this.signals = new Int32Array(
      take(SharedSignals.words(counterCount(sizes)) * 4).bytes.buffer,
      0,
      SharedSignals.words(counterCount(sizes)),
    );
    this.lastTokens = take((limits.maxRunning + 1) * 4).words;
    this.parts = Array.from({ length: ppSize }, () =>
      Array.from({ length: SETS }, () => Array.from({ length: tpSize }, () => take(partBytes))),
    );
    this.places = Array.from({ length: stepPlaces(sizes) }, () => {
      const inputAt = at;
      at += alignUp(StepInput.bytes(limits), 64);
      return {
        input: new StepInput(limits, buffer, inputAt),
        tokens: take(sampledRows * 4).words,
        logprobs: take(logprobBytes),
        handOvers: Array.from({ length: ppSize - 1 }, () => take(hiddenBytes)),
      };
    });
  }

  /** Size in bytes of a group's buffer; pages of it that are never touched cost address space only. */
  static bytes(sizes: GroupSizes): number {
    const { tpSize, ppSize, limits } = sizes;
    const { hiddenBytes, partBytes, logprobBytes, sampledRows } = byteSizes(sizes);
    const place = [StepInput.bytes(limits), sampledRows * 4, logprobBytes, ...Array<number>(ppSize - 1).fill(hiddenBytes)];
    return [
      SharedSignals.words(counterCount(sizes)) * 4,
      (limits.maxRunning + 1) * 4,
      ...Array<number>(ppSize * SETS * tpSize).fill(partBytes),
      ...Array<number[]>(stepPlaces(sizes)).fill(place).flat(),
    ].reduce((sum, bytes) => sum + alignUp(bytes, 64), 0);
  }
}

function byteSizes({ limits, hidden, tpSize }: GroupSizes) {
  const rows = limits.maxRunning + limits.prefillChunk;
  const sampledRows = limits.maxRunning + limits.draftRows;
  const hiddenBytes = rows * hidden * 4;
  // A row that the ranks' candidate lists cannot settle is exchanged as a whole.
  const samplerBytes = Math.max(ShardLayout.capacity(sampledRows), candidateWords(limits.vocabulary)) * 4;
  return {
    hiddenBytes,
    partBytes: tpSize > 1 ? Math.max(hiddenBytes, samplerBytes) : 0,
    logprobBytes: sampledRows * LOGPROB_WORDS * 4,
    sampledRows,
  };
}

function partAt(buffer: ArrayBufferLike, at: number, bytes: number): Part {
  return {
    bytes: new Uint8Array(buffer, at, bytes),
    floats: new Float32Array(buffer, at, bytes / 4),
    words: new Uint32Array(buffer, at, bytes / 4),
  };
}
