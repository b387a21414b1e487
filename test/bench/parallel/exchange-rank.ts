/** One rank of the exchange measurement, in a thread: what a reduction of a split model does, without the model. */
import { Device } from '../../../engine/gpu/device.ts';
import { GroupMemory } from '../../../engine/parallel/group-memory.ts';
import type { GroupSizes } from '../../../engine/parallel/group-memory.ts';
import { Link } from '../../../engine/parallel/link.ts';
import { SharedSignals } from '../../../engine/parallel/signals.ts';
import type { Platform, WorkerPort } from '../../../engine/platform/platform.ts';

export interface ExchangeTask {
  readonly rank: number;
  readonly adapter: string | undefined;
  readonly sizes: GroupSizes;
  readonly buffer: SharedArrayBuffer;
  readonly bytes: readonly number[];
  readonly rounds: number;
}

/** Median milliseconds of one reduction's parts. */
export interface ExchangeTimes {
  readonly bytes: number;
  /** Submit, copy and map; the sum over ranks, waiting for the slowest included; the upload; all of it. */
  readonly readback: number;
  readonly sum: number;
  readonly upload: number;
  readonly total: number;
}

/** Measures as the first message says and posts the times of every size. */
export function main(platform: Platform, port: WorkerPort): void {
  port.onMessage((message) => void measure(platform, message as ExchangeTask).then((times) => port.post(times)));
}

async function measure(platform: Platform, { rank, adapter, sizes, buffer, bytes, rounds }: ExchangeTask): Promise<ExchangeTimes[]> {
  const device = await Device.create(platform, adapter === undefined ? {} : { name: adapter });
  const group = new GroupMemory(sizes, buffer);
  const link = new Link({ ...sizes, rank, stage: 0 }, group, new SharedSignals(group.signals));
  const results: ExchangeTimes[] = [];
  for (const size of bytes) {
    const tensor = device.tensor('partial', 'f32', [size / 4]);
    const sums = new Float32Array(size / 4);
    const times: [number, number, number, number][] = [];
    for (let round = 0; round < rounds; round++) {
      const start = performance.now();
      const rec = device.record('reduction');
      const readback = rec.readback(tensor);
      rec.submit();
      await readback.into(link.mine.bytes.subarray(0, size));
      const read = performance.now();
      await link.allReduce(size / 4, sums);
      const summed = performance.now();
      device.write(tensor, sums);
      const written = performance.now();
      times.push([read - start, summed - read, written - summed, written - start]);
    }
    const median = (part: 0 | 1 | 2 | 3): number => times.map((time) => time[part]).sort((a, b) => a - b)[rounds >> 1]!;
    results.push({ bytes: size, readback: median(0), sum: median(1), upload: median(2), total: median(3) });
    device.destroy(tensor);
  }
  return results;
}
