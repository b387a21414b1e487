import type { EngineConfig } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { KVShape } from '../ops/kv.ts';
import { pageBytes } from '../ops/kv.ts';
import { ceilDiv } from '../util/math.ts';

/** WebGPU does not say how much memory there is. Unless the operator does, this much is taken for pages. */
const DEFAULT_KV_BYTES = { software: 256 * 2 ** 20, gpu: 4 * 2 ** 30 } as const;

/**
 * Pages for keys and values: `memFractionStatic` of the device memory less what is allocated already, at most what `maxRunning`
 * sequences of `context` tokens can use, at most what the adapter binds. Throws EngineError('out_of_memory') below 4 pages.
 */
export function kvPageCount(device: Device, shape: KVShape, config: EngineConfig, context: number): number {
  const { caps, stats } = device;
  const page = pageBytes(shape);
  const budget =
    config.deviceMemory === undefined
      ? DEFAULT_KV_BYTES[caps.software ? 'software' : 'gpu']
      : config.deviceMemory * config.memFractionStatic - stats.bufferBytes;
  const pages = Math.min(
    Math.floor(budget / (2 * shape.layers * page)),
    Math.floor(caps.maxBindingBytes / page),
    config.maxRunningRequests * ceilDiv(context, shape.pageSize),
  );
  if (pages < 4) {
    throw new EngineError(
      'out_of_memory',
      `${Math.max(0, Math.floor(budget))} bytes are left for keys and values after ${stats.bufferBytes} bytes of weights and activations; 4 pages take ${8 * shape.layers * page}`,
    );
  }
  return pages;
}
