import type { Tensor } from '../gpu/tensor.ts';
import type { AttentionSplit } from '../ops/paged-attention.ts';
import type { Spans } from '../ops/recurrent.ts';

/** What follows a forward pass: a row's token and the hidden state before it are what the head that guesses attends to at the position before the row's. */
export interface FollowInput {
  /** [T] u32: where a row's hidden state before it stands among those that are kept and, behind them, those of this pass. */
  readonly previous: Tensor;
  /** [T] u32: its position, and the place of its key and value. */
  readonly positions: Tensor;
  readonly slots: Tensor;
  /** [copies, 2] u32: from and to, of the hidden states of this pass that are kept. */
  readonly pairs: Tensor;
  readonly copies: number;
}

/**
 * The device side of a batch: what a decoder's forward pass reads. T rows of a ragged batch, decodes first; models see this and never
 * a Batch.
 */
export interface ForwardInput {
  /** T. */
  readonly rows: number;
  /** The first of the rows of prompts that take subgroup matrices, which come last; absent = none do. */
  readonly promptFrom?: number;
  /** [T] u32. */
  readonly tokens: Tensor;
  /** [T] u32: position of a row in its sequence. */
  readonly positions: Tensor;
  /** [T] u32: where a row's key and value go. */
  readonly slots: Tensor;
  /** [running sequences, pages] u32. */
  readonly blockTable: Tensor;
  /** The same two of layers that see a window only. */
  readonly windowSlots: Tensor;
  readonly windowTable: Tensor;
  /** [tiles, 4] u32 (ops/paged-attention.ts): one tile a decode, then tiles of `prefillTileRows` rows. */
  readonly tiles: Tensor;
  readonly decodeTiles: number;
  readonly prefillTiles: number;
  readonly prefillTileRows: number;
  /** How the decodes' positions are spread over workgroups; absent = not. */
  readonly split: AttentionSplit | undefined;
  /** The rows by sequence, with the slots of their states: of models with recurrent layers. */
  readonly spans: Spans;
  /** Rows that give logits, in order: the tensor [B] u32 of row numbers, or undefined for the first `logitRows` rows. */
  readonly logitIndices: Tensor | undefined;
  readonly logitRows: number;
  /** Of a decoder with a head that guesses: what its keys and values are made of, and what it needs later. Absent = neither is made. */
  readonly follow?: FollowInput;
  /** For tests: called after each stage while recording, e.g. to copy what it made. */
  readonly trace?: (stage: string, value: Tensor) => void;
}
