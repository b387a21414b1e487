import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { weightFragment } from './linear.ts';
import type { LinearWeight } from './linear.ts';

const WG = 64;

export const EMBEDDING = defineKernel({
  file: 'embedding/embedding.wgsl',
  fragments: (v) => ['lib/grid.wgsl', weightFragment(v)],
  bindings: { ids: 'read', table: 'read', positions: 'read', out: 'write' },
  params: { rows: 'u32', c4: 'u32', n_weight: 'u32', first_id: 'u32', count: 'u32', first_position: 'u32' },
  overrides: { WG: 'u32', HAS_POSITIONS: 'bool', CLEAR: 'bool' },
});

export interface EmbeddingArgs {
  /** [T] u32. */
  readonly ids: Tensor;
  /** [V, C] as packed by packLinear (outFeatures V, inFeatures C, C a multiple of 4). */
  readonly table: LinearWeight;
  /** [S, C] f32 learned positions, added from `firstPosition` on. */
  readonly positions?: Tensor;
  readonly firstPosition?: number;
  /** The id of the table's first row, where the table is a slice of the vocabulary: other ids then give zeros. */
  readonly firstId?: number;
  /** [T, C] f32. */
  readonly out: Tensor;
  readonly rows?: number;
}

/** out[t] = table[ids[t]] (+ positions[firstPosition + t]). */
export function embedding(rec: Recorder, { ids, table, positions, firstPosition = 0, firstId, out, rows }: EmbeddingArgs): void {
  assert(table.inFeatures % 4 === 0, `embedding: ${table.inFeatures} channels, expected a multiple of 4`);
  const count = rows ?? ids.size;
  const c4 = table.inFeatures / 4;
  for (const part of table.parts) {
    rec.dispatch(
      EMBEDDING,
      {
        storage: table.dtype,
        overrides: { WG, HAS_POSITIONS: positions ? 1 : 0, CLEAR: firstId !== undefined && part.first === 0 ? 1 : 0 },
      },
      { ids, table: part.weight, positions: positions ?? ids, out },
      { rows: count, c4, n_weight: part.padded, first_id: (firstId ?? 0) + part.first, count: part.count, first_position: firstPosition },
      [ceilDiv(count * c4, WG)],
    );
  }
}
