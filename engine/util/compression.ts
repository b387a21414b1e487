/** Compression ratio of a text, by which repetitive transcripts are recognised. */
import { deflate } from 'pako';

/**
 * UTF-8 bytes of the text divided by its bytes as the reference zlib compresses them at its default level, as Python's `zlib.compress` does; 0
 * for an empty text. The thresholds are for that compressor. The `CompressionStream` of Node and browsers is a faster one, whose results are up to an
 * eighth longer, and not the same everywhere.
 */
export function compressionRatio(text: string): number {
  const bytes = new TextEncoder().encode(text);
  return bytes.length / deflate(bytes, { legacyHash: true }).length;
}
