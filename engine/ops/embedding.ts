import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { weightFragments, weightVariant } from './weight.ts';
import type { LinearWeight } from './weight.ts';

const WG = 64;
const NO_LIMIT = 0xffffffff;

export const EMBEDDING = defineKernel({
  file: 'embedding/embedding.wgsl',
  fragments: (v) => ['lib/grid.wgsl', ...weightFragments(v)],
  bindings: { ids: 'read', weight: 'read', positions: 'read', places: 'read', out: 'write' },
  params: { rows: 'u32', k4: 'u32', n_weight: 'u32', first_id: 'u32', count: 'u32', limit: 'u32', scale: 'f32' },
  overrides: { WG: 'u32', HAS_POSITIONS: 'bool', CLEAR: 'bool' },
});

export interface EmbeddingArgs {
  /** [T] u32. */
  readonly ids: Tensor;
  /** [V, C] in the layouts of linear weights (outFeatures V, inFeatures C, C a multiple of 4). */
  readonly table: LinearWeight;
  /** Learned positions [S, C] f32, and the one that is added to each row, [T] u32. */
  readonly positions?: { readonly table: Tensor; readonly places: Tensor } | undefined;
  /** Token id of the table's first row, if the table is a slice of the vocabulary: ids outside of it give zeros. */
  readonly firstId?: number;
  /** Ids from `limit` on are read as 0; default: none are. */
  readonly limit?: number | undefined;
  /** Factor of the table's values; default 1. */
  readonly scale?: number | undefined;
  /** [T, C] f32. */
  readonly out: Tensor;
  readonly rows?: number;
}

/** out[t] = scale * table[ids[t]] (+ positions[places[t]]). */
export function embedding(rec: Recorder, args: EmbeddingArgs): void {
  const { ids, table, positions, firstId, limit = NO_LIMIT, scale = 1, out, rows } = args;
  assert(table.inFeatures % 4 === 0, `embedding: ${table.inFeatures} channels, expected a multiple of 4`);
  const count = rows ?? ids.size;
  const k4 = table.inFeatures / 4;
  for (const part of table.parts) {
    rec.dispatch(
      EMBEDDING,
      {
        ...weightVariant(part),
        overrides: { WG, HAS_POSITIONS: positions ? 1 : 0, CLEAR: firstId !== undefined && part.first === 0 ? 1 : 0 },
      },
      { ids, weight: part.weight, positions: positions?.table ?? ids, places: positions?.places ?? ids, out },
      {
        rows: count,
        k4,
        n_weight: part.padded,
        first_id: (firstId ?? 0) + part.first,
        count: part.count,
        limit,
        scale,
      },
      [ceilDiv(count * k4, WG)],
    );
  }
}
