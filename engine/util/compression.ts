/** Compression ratio of a text, by which repetitive transcripts are recognised. */

/** UTF-8 bytes of the text divided by its zlib-compressed bytes (RFC 1950, like Python's `zlib.compress`); 0 for an empty text. */
export async function compressionRatio(text: string): Promise<number> {
  const bytes = new TextEncoder().encode(text);
  const packed = new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate')));
  return bytes.length / (await packed.arrayBuffer()).byteLength;
}
