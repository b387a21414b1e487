import type { EngineConfig } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Remedy } from '../errors.ts';
import type { Range } from '../util/math.ts';

/** The part of a decoder that one rank holds. */
export interface Shard {
  /** Index among the tensor-parallel ranks that hold the same layers. */
  readonly rank: number;
  readonly ranks: number;
  /** Range of the model's layers. The shard with the first layer has the embedding, that with the last has the vocabulary head. */
  readonly layers: Range;
}

/** The shard that is a whole decoder of this many layers. */
export function wholeShard(layers: number): Shard {
  return { rank: 0, ranks: 1, layers: { from: 0, to: layers } };
}

/**
 * Throws EngineError('unsupported') where the layers do not suffice for this many pipeline stages, or where `split` does not add up to
 * them.
 */
export function expectStages(layers: number, stages: number, split: EngineConfig['ppSplit']): void {
  if (layers < stages) {
    const fewer: Remedy = { does: 'deal them to fewer', settings: [{ name: 'ppSize' }] };
    throw new EngineError('unsupported', `${layers} layers cannot be dealt to ${stages} stages`, { remedies: [fewer] });
  }
  if (split === 'auto' || (split.length === stages && split.reduce((sum, count) => sum + count, 0) === layers)) return;
  const again: Remedy = { does: 'deal them', settings: [{ name: 'ppSplit' }] };
  throw new EngineError('unsupported', `${layers} layers are not dealt to ${stages} stages as ${split.join(',')}`, { remedies: [again] });
}

const FEWER: Remedy = { does: 'split it over fewer', settings: [{ name: 'tpSize' }] };

function tooMany(what: string, ranks: number): EngineError {
  return new EngineError('unsupported', `${what} cannot be split over ${ranks} adapters`, { remedies: [FEWER] });
}

/**
 * A rank's range of `total` items that are dealt out in units of `unit`; throws EngineError('unsupported') when there are fewer units than
 * ranks.
 */
export function shareOf(what: string, total: number, unit: number, { rank, ranks }: Pick<Shard, 'rank' | 'ranks'>): Range {
  const units = Math.ceil(total / unit);
  if (units < ranks) throw tooMany(`${total} ${what} (in units of ${unit})`, ranks);
  const cut = (at: number): number => Math.min(total, Math.floor((units * at) / ranks) * unit);
  return { from: cut(rank), to: cut(rank + 1) };
}

/**
 * A rank's query heads and the key/value heads that they read. Key/value heads are dealt out whole, with their groups of query heads; where
 * there are fewer of them than ranks, several ranks keep a copy of the same one and share its group. Throws EngineError('unsupported')
 * where a rank would have no head.
 */
export function headShare(heads: number, kvHeads: number, shard: Pick<Shard, 'rank' | 'ranks'>): { readonly q: Range; readonly kv: Range } {
  const { rank, ranks } = shard;
  const group = heads / kvHeads;
  if (kvHeads >= ranks) {
    const kv = shareOf('key/value heads', kvHeads, 1, shard);
    return { q: { from: kv.from * group, to: kv.to * group }, kv };
  }
  const head = Math.floor((rank * kvHeads) / ranks);
  const first = Math.ceil((head * ranks) / kvHeads);
  const sharers = Math.ceil(((head + 1) * ranks) / kvHeads) - first;
  if (sharers > group) throw tooMany(`${heads} attention heads that share ${kvHeads} for keys and values`, ranks);
  const q = shareOf('attention heads of a group', group, 1, { rank: rank - first, ranks: sharers });
  return { q: { from: head * group + q.from, to: head * group + q.to }, kv: { from: head, to: head + 1 } };
}
