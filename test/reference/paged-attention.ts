/** Causal attention over paged keys and values, in f64. */
import { keyIndex, valueIndex } from './kv.ts';
import type { KVLayout } from './kv.ts';
import type { AttentionScores } from '../../engine/ops/paged-attention.ts';

export interface AttentionInput extends KVLayout {
  /** [T, H, D]. */
  readonly q: ArrayLike<number>;
  readonly k: ArrayLike<number>;
  readonly v: ArrayLike<number>;
  /** Values are the first so many channels of their keys, and `v` is not read. */
  readonly valuesInKeys?: number | undefined;
  readonly heads: number;
  /** Of int8 pages: channels that keys keep beside theirs, and what queries [T, H, n] have for them. */
  readonly apart?: { readonly q: ArrayLike<number>; key(slot: number, head: number): readonly number[] } | undefined;
  readonly scores?: AttentionScores | undefined;
  /** [H]: a score of each head that takes part in the softmax and has no value. */
  readonly sinks?: ArrayLike<number> | undefined;
  /** Of every row: its sequence's pages and its position. */
  readonly rows: readonly { readonly pages: readonly number[]; readonly position: number }[];
}

export function pagedAttention(input: AttentionInput): Float64Array {
  const { q, k, v, heads, kvHeads, headDim, valuesInKeys, pageSize, rows } = input;
  const valueDim = valuesInKeys ?? headDim;
  const valueAt = (slot: number, head: number, d: number): number =>
    valuesInKeys === undefined ? v[valueIndex(input, slot, head, d)]! : k[keyIndex(input, slot, head, d)]!;
  const { scale = 1 / Math.sqrt(headDim), softCap: cap, window = Infinity, growth = { rate: 0, span: 1 } } = input.scores ?? {};
  const out = new Float64Array(rows.length * heads * valueDim);
  rows.forEach(({ pages, position }, t) => {
    const grown = scale * (1 + growth.rate * Math.log(1 + Math.floor(position / growth.span)));
    for (let h = 0; h < heads; h++) {
      const head = Math.floor(h / (heads / kvHeads));
      const at = (t * heads + h) * headDim;
      const from = Math.max(0, position + 1 - window);
      const seen = Array.from({ length: position + 1 - from }, (_, i) => from + i);
      const slots = seen.map((s) => pages[Math.floor(s / pageSize)]! * pageSize + (s % pageSize));
      const scores = slots.map((slot) => {
        let sum = 0;
        for (let d = 0; d < headDim; d++) sum += q[at + d]! * k[keyIndex(input, slot, head, d)]!;
        const kept = input.apart?.key(slot, head) ?? [];
        kept.forEach((value, i) => (sum += input.apart!.q[(t * heads + h) * kept.length + i]! * value));
        return cap === undefined ? sum * grown : cap * Math.tanh((sum * grown) / cap);
      });
      const sink = input.sinks?.[h] ?? -Infinity;
      const top = Math.max(sink, ...scores);
      const weights = scores.map((score) => Math.exp(score - top));
      const total = weights.reduce((a, b) => a + b, Math.exp(sink - top));
      slots.forEach((slot, s) => {
        for (let d = 0; d < valueDim; d++) out[(t * heads + h) * valueDim + d]! += (weights[s]! / total) * valueAt(slot, head, d);
      });
    }
  });
  return out;
}
