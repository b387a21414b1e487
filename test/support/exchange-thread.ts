/** A thread of exchange.test.ts: a rank that only adds, hands over and completes. */
import { GroupMemory } from '../../engine/parallel/group-memory.ts';
import type { GroupSizes } from '../../engine/parallel/group-memory.ts';
import { Link } from '../../engine/parallel/link.ts';
import { SharedSignals } from '../../engine/parallel/signals.ts';
import type { Platform, WorkerPort } from '../../engine/platform/platform.ts';

export interface ExchangeTask {
  readonly index: number;
  readonly sizes: GroupSizes;
  readonly buffer: SharedArrayBuffer;
  readonly rounds: number;
}

export interface ExchangeReply {
  readonly sums: readonly number[];
}

/** Answers one task. */
export function main(_: Platform, port: WorkerPort): void {
  port.onMessage((message) => void run(message as ExchangeTask).then((reply) => port.post(reply)));
}

async function run({ index, sizes, buffer, rounds }: ExchangeTask): Promise<ExchangeReply> {
  const memory = new GroupMemory(sizes, buffer);
  const [rank, stage] = [index % sizes.tpSize, Math.floor(index / sizes.tpSize)];
  const link = new Link({ ...sizes, rank, stage }, memory, new SharedSignals(memory.signals));
  const out = new Float32Array(1);
  const sums: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const place = memory.places[round % memory.places.length]!;
    // As steps do: a place is used again when the step before in it is complete.
    if (stage === 0) await link.completed(Math.max(0, round + 1 - memory.places.length));
    const base = stage === 0 ? round : (await link.received(place, round + 1)).floats[0]!;
    link.mine.floats[0] = rank + 1 + base;
    await link.allReduce(1, out);
    sums.push(out[0]!);
    if (rank > 0) continue;
    if (stage === 0) {
      link.handOver(place).floats[0] = out[0]!;
      link.handedOver();
    } else link.complete();
  }
  return { sums };
}
