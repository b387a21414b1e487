/** Splits a batch into micro-batches, so that all pipeline stages work at the same time. A row's result does not depend on the rows beside it, so the tokens stay the same. */
import type { Batch, BatchItem, SampledRow } from '../scheduler/batch.ts';
import { ceilDiv } from '../util/math.ts';

/** A part of a batch. */
export interface MicroBatch {
  readonly batch: Batch;
  /** For each sampled row, its index among the sampled rows of the whole batch. */
  readonly rows: readonly number[];
}

/** Fewest prompt rows of a micro-batch: fewer do not fill the kernels. */
const LEAST_ROWS = 16;

interface Draft {
  readonly decodes: BatchItem[];
  readonly prefills: BatchItem[];
  readonly sampled: SampledRow[];
  readonly rows: number[];
}

/** Splits a batch into at most `parts` micro-batches with about the same number of rows. Chunks of a prompt stay in order. */
export function microBatches(batch: Batch, parts: number): readonly MicroBatch[] {
  const drafts: Draft[] = [];
  const draft = (i: number): Draft => (drafts[i] ??= { decodes: [], prefills: [], sampled: [], rows: [] });
  let sampled = 0;
  const put = (to: Draft, list: 'decodes' | 'prefills', item: BatchItem): void => {
    to[list].push(item);
    for (let i = 0; i < item.samples; i++) {
      to.sampled.push(batch.sampled[sampled]!);
      to.rows.push(sampled++);
    }
  };
  const decodes = ceilDiv(batch.decodes.length, parts);
  batch.decodes.forEach((item, i) => put(draft(Math.floor(i / decodes)), 'decodes', item));
  const share = Math.max(LEAST_ROWS, ceilDiv(rowsOf(batch.prefills), parts));
  let part = 0;
  let room = share;
  for (const item of batch.prefills) {
    let rest = item;
    // Drafts are verified in one piece, since all of their rows sample.
    while (rest.drafts.length === 0 && rest.count > room && part < parts - 1) {
      if (room > 0) put(draft(part), 'prefills', { ...rest, count: room, samples: 0 });
      rest = { ...rest, start: rest.start + room, count: rest.count - room };
      [part, room] = [part + 1, share];
    }
    if (rest.count > room && part < parts - 1) [part, room] = [part + 1, share];
    put(draft(part), 'prefills', rest);
    room -= rest.count;
  }
  return drafts.filter((made) => made).map(({ rows, ...made }) => ({ batch: made, rows }));
}

function rowsOf(items: readonly BatchItem[]): number {
  return items.reduce((sum, { count }) => sum + count, 0);
}
