/**
 * A draft head for speculative decoding (Qwen3.5's `mtp`): one more attention layer after the final norm. Its row at position t takes the
 * hidden state there and the token of position t + 1, and its logits predict the token of position t + 2. Its keys and values lie in pages
 * of their own, under the page numbers and positions of the other layers, so that a cached prefix includes them. Embedding and vocabulary
 * head are the model's.
 */
import { embedding } from '../../ops/embedding.ts';
import type { KVCache } from '../../ops/kv.ts';
import { linear } from '../../ops/linear.ts';
import { rmsNorm } from '../../ops/norm.ts';
import { copyRows, gatherRows } from '../../ops/sample.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import type { DraftInput } from '../decoder.ts';
import type { FollowInput, ForwardInput } from '../forward-input.ts';
import type { WeightLoader } from '../weight-loader.ts';
import { attend, leaveKeys } from './attention.ts';
import type { DecoderFamily, DecoderStackConfig } from './stack-config.ts';
import type { DraftHead, Layer, Weights, Workspace } from './stack-parts.ts';

/** Loads the weights `mtp.*`; `loadLayer` loads the layer below a name. */
export async function loadDraftHead<W>(
  loader: WeightLoader,
  { hidden, normOffset }: DecoderStackConfig,
  loadLayer: (at: string) => Promise<Layer<W>>,
): Promise<DraftHead<W>> {
  const norm = (name: string): Promise<Tensor> => loader.tensor(`mtp.${name}.weight`, [hidden], normOffset);
  const half = (from: number): Promise<LinearWeight> =>
    loader.linear('mtp.fc.weight', hidden, 2 * hidden, { columns: { from, to: from + hidden } });
  return {
    embeddingNorm: await norm('pre_fc_norm_embedding'),
    hiddenNorm: await norm('pre_fc_norm_hidden'),
    ofEmbedding: await half(0),
    ofHidden: await half(hidden),
    layer: await loadLayer('mtp.layers.0'),
    norm: await norm('norm'),
  };
}

/** What the draft head's passes share with the stack: weights, and activations, which the stack needs only during its own passes. */
interface Stack<W, S> {
  readonly family: DecoderFamily<W, S>;
  readonly config: DecoderStackConfig;
  readonly weights: Weights<W>;
  readonly ws: Workspace<S>;
}

/**
 * Appends the draft head's work behind a forward pass: keys and values for the positions before each row, and the copies of hidden states
 * that are kept.
 */
export function recordFollow<W, S>(rec: Recorder, stack: Stack<W, S>, input: ForwardInput, follow: FollowInput, kv: KVCache): void {
  const { config, weights, ws } = stack;
  const { rows, tokens } = input;
  const { layer } = weights.draftHead!;
  const finals = ws.finals!.all;
  recordEmbedding(rec, stack, tokens, rows);
  gatherRows(rec, { x: finals, indices: follow.previous, out: ws.hidden, rows });
  recordInput(rec, stack, ws.hidden, ws.hidden, rows);
  const { share, place, rope } = layer;
  leaveKeys(
    rec,
    layer.attention!,
    ws.attention.get(share.attention)!,
    share.attention,
    {
      input: { x: ws.hidden, norm: layer.inputNorm, eps: config.eps, normed: ws.normed },
      layer: place,
      cosSin: weights.cosSin.get(rope)!,
    },
    { ...input, positions: follow.positions, slots: follow.slots },
    kv,
  );
  if (follow.copies > 0) copyRows(rec, { x: finals, pairs: follow.pairs, count: follow.copies });
}

/** Appends a pass that guesses one token for each row of the batch; returns the logits. */
export function recordDraft<W, S>(rec: Recorder, stack: Stack<W, S>, { batch, hidden }: DraftInput, kv: KVCache): Tensor {
  const { family, config, weights, ws } = stack;
  const { rows, tokens } = batch;
  const { eps } = config;
  const { layer, norm } = weights.draftHead!;
  const { share } = layer;
  recordEmbedding(rec, stack, tokens, rows);
  if (hidden) gatherRows(rec, { x: ws.finals!.all, indices: hidden, out: ws.gathered, rows });
  recordInput(rec, stack, hidden ? ws.gathered : ws.last, ws.hidden, rows);
  const own = { layer: layer.place, cosSin: weights.cosSin.get(layer.rope)!, scores: { ...config.scores, window: layer.window } };
  const input = { x: ws.hidden, norm: layer.inputNorm, eps, normed: ws.normed };
  const step = { ...own, input, indices: undefined, kept: rows, residual: ws.hidden, out: ws.middle };
  attend(rec, layer.attention!, ws.attention.get(share.attention)!, share.attention, step, batch, kv);
  const half = { x: ws.middle, norm: layer.mlpNorm, eps, normed: ws.normed };
  family.mlp.record(rec, layer.mlp!, ws.mlp.get(share.mlp)!, { input: half, residual: ws.middle, out: ws.hidden, rows });
  // The next guess begins with the output of this norm.
  rmsNorm(rec, { x: ws.hidden, weight: norm, out: ws.last, eps, rows });
  linear(rec, { x: ws.last, weight: weights.head!.weight, out: ws.logits!, rows });
  return ws.logits!;
}

/** ws.middle = the token embeddings' part of `fc`. */
function recordEmbedding<W, S>(rec: Recorder, { config, weights, ws }: Stack<W, S>, ids: Tensor, rows: number): void {
  const { embeddingNorm, ofEmbedding } = weights.draftHead!;
  embedding(rec, { ids, table: weights.embedding!, out: ws.hidden, rows, scale: config.embeddingScale });
  rmsNorm(rec, { x: ws.hidden, weight: embeddingNorm, out: ws.normed, eps: config.eps, rows });
  linear(rec, { x: ws.normed, weight: ofEmbedding, out: ws.middle, rows });
}

/** out = ws.middle + the hidden states' part of `fc`. */
function recordInput<W, S>(rec: Recorder, { config, weights, ws }: Stack<W, S>, hidden: Tensor, out: Tensor, rows: number): void {
  const { hiddenNorm, ofHidden } = weights.draftHead!;
  rmsNorm(rec, { x: hidden, weight: hiddenNorm, out: ws.normed, eps: config.eps, rows });
  linear(rec, { x: ws.normed, weight: ofHidden, residual: ws.middle, out, rows });
}
