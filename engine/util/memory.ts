/** Descriptions of memory use, for logs and the start-up text. */
import type { MemoryPlan, MemoryUse } from '../api.ts';

/** Formats a number of bytes, as in "18.2 MiB" or "2.2 GiB". */
export function formatBytes(bytes: number): string {
  const mib = bytes / 2 ** 20;
  return mib < 1024 ? `${mib.toFixed(1)} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
}

/** Describes a device's memory and what one model takes of it, in one line. */
export function describeMemory(use: MemoryUse): string {
  const { deviceBytes, source, fraction, otherBytes, weightBytes, activationBytes } = use;
  const others = otherBytes > 0 ? `other models ${formatBytes(otherBytes)}, ` : '';
  const share = describeShare({ deviceBytes, source, fraction });
  return `${share}: ${others}weights ${formatBytes(weightBytes)}, activations ${formatBytes(activationBytes)}, ${describePages(use)}`;
}

/** Describes a memory plan: one line per model and one for the total. */
export function describePlan({ models, totalBytes, ...share }: MemoryPlan): readonly string[] {
  const lines = models.map(({ id, weightBytes, activationBytes, pages }) => {
    const kv = pages ? `, ${describePages(pages)}` : '';
    return `${id}: weights ${formatBytes(weightBytes)}, activations ${formatBytes(activationBytes)}${kv}`;
  });
  return [...lines, `${formatBytes(totalBytes)} in all, of ${describeShare(share)}`];
}

function describePages({
  kvPages,
  windowPages,
  pageSize,
  kvCacheDtype,
  kvBytes,
  stateSlots,
  stateBytes = 0,
}: Pick<MemoryUse, 'kvPages' | 'windowPages' | 'pageSize' | 'kvCacheDtype' | 'kvBytes' | 'stateSlots' | 'stateBytes'>): string {
  const states = stateSlots === undefined ? '' : `${stateSlots} states ${formatBytes(stateBytes)}, `;
  const windows = windowPages === undefined ? '' : `, ${windowPages} for windows,`;
  return `${states}${kvPages} KV pages${windows} of ${pageSize} tokens (${kvCacheDtype}) ${formatBytes(kvBytes)}`;
}

function describeShare({ deviceBytes, source, fraction }: Pick<MemoryUse, 'deviceBytes' | 'source' | 'fraction'>): string {
  return `${Number(fraction.toPrecision(3))} x ${formatBytes(deviceBytes)} (${source}) = ${formatBytes(fraction * deviceBytes)}`;
}

/** Describes bytes by storage type in one line, largest first, as in "Q4_K 212.0 MiB, f16 0.1 MiB". */
export function describeStored(bytes: ReadonlyMap<string, number>): string {
  return [...bytes].sort(([, a], [, b]) => b - a).map(([type, size]) => `${type} ${formatBytes(size)}`).join(', '); // prettier-ignore
}
