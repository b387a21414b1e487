/** How well text packs, which tells a text that repeats itself from one that says something. */

/** Bytes of the text over bytes as zlib packs them (RFC 1950, what `zlib.compress` of Python makes); 0 where there is none. */
export async function compressionRatio(text: string): Promise<number> {
  const bytes = new TextEncoder().encode(text);
  const packed = new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate')));
  return bytes.length / (await packed.arrayBuffer()).byteLength;
}
