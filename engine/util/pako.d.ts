/** The half of pako that compresses; its types are of the whole only. */
declare module 'pako/lib/deflate.js' {
  /** Compresses as zlib does at level 6, into its format (RFC 1950). */
  export function deflate(data: Uint8Array): Uint8Array;
}
