import type { Tensor } from '../gpu/tensor.ts';
import type { LoraRows } from '../ops/lora.ts';
import type { AttentionSplit } from '../ops/paged-attention.ts';
import type { Spans } from '../ops/recurrent.ts';

/**
 * Input of the draft head behind a forward pass: from each row's token and the hidden state of the position before it, the head stores a
 * key and value at that position.
 */
export interface FollowInput {
  /** [T] u32: row, in Workspace.finals, of the hidden state before each row; kept ones come first, those of this pass behind them. */
  readonly previous: Tensor;
  /** [T] u32: position of that hidden state, and the KV slot for it. */
  readonly positions: Tensor;
  readonly slots: Tensor;
  /** [copies, 2] u32: (from, to) rows of Workspace.finals, for hidden states of this pass that are kept. */
  readonly pairs: Tensor;
  readonly copies: number;
}

/**
 * The device side of a batch, which a decoder's forward pass reads: T rows of a ragged batch, decodes first. Models see this and never a
 * Batch.
 */
export interface ForwardInput {
  /** T, padding included. */
  readonly rows: number;
  /** First of the prompt rows that are multiplied with subgroup matrices, which come last; absent or T = none are. */
  readonly promptFrom?: number;
  /** [T] u32 token ids. */
  readonly tokens: Tensor;
  /** [T] u32: position of a row in its sequence. */
  readonly positions: Tensor;
  /** [T] u32: where a row's key and value go: page * pageSize + offset, NO_SLOT for padding. */
  readonly slots: Tensor;
  /** [maxRunning, pages of the longest sequence] u32 page numbers. */
  readonly blockTable: Tensor;
  /** Slots and block table of the sliding-window layers; equal to `slots` and `blockTable` in models without them. */
  readonly windowSlots: Tensor;
  readonly windowTable: Tensor;
  /** [tiles, 4] u32 (ops/paged-attention.ts): one tile per decode, then tiles of up to `prefillTileRows` prompt rows. */
  readonly tiles: Tensor;
  readonly decodeTiles: number;
  readonly prefillTiles: number;
  readonly prefillTileRows: number;
  /** How decode attention splits positions over workgroups; undefined = it does not. */
  readonly split: AttentionSplit | undefined;
  /** Rows by sequence with their recurrent-state slots, read by recurrent layers only. */
  readonly spans: Spans;
  /** [B] u32: rows that give logits, in order; undefined = the first `logitRows` rows. */
  readonly logitIndices: Tensor | undefined;
  readonly logitRows: number;
  /** Input of the draft head behind this pass, in decoders that have one; absent = it stores no keys, and no hidden states are kept. */
  readonly follow?: FollowInput;
  /** LoRA adapters of the rows, and of the rows that give logits; absent = no row has one. */
  readonly lora?: LoraRows & { readonly ofLogits: Tensor };
  /** Called after each stage while recording, e.g. to copy the tensor: for tests, and to find values that are not finite. */
  readonly trace?: (stage: string, value: Tensor) => void;
}
