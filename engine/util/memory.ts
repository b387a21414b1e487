/** Memory in words. */
import type { MemoryUse } from '../api.ts';

/** Bytes for people: "18.2 MiB", "2.2 GiB". */
export function formatBytes(bytes: number): string {
  const mib = bytes / 2 ** 20;
  return mib < 1024 ? `${mib.toFixed(1)} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
}

/** Memory and what takes it, in one line. */
export function describeMemory(use: MemoryUse): string {
  const { deviceBytes, source, fraction, otherBytes, weightBytes, activationBytes, kvBytes, kvPages, pageSize, kvCacheDtype } = use;
  const others = otherBytes > 0 ? `other models ${formatBytes(otherBytes)}, ` : '';
  const share = `${fraction} x ${formatBytes(deviceBytes)} (${source}) = ${formatBytes(fraction * deviceBytes)}`;
  return `${share}: ${others}weights ${formatBytes(weightBytes)}, activations ${formatBytes(activationBytes)}, ${kvPages} KV pages of ${pageSize} tokens (${kvCacheDtype}) ${formatBytes(kvBytes)}`;
}
