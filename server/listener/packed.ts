/** Names of compressed copies of a file, which the build writes beside it and the server sends. */

/** File suffix by content encoding, best compression first. */
export const PACKED_SUFFIXES: Readonly<Record<string, string>> = { br: '.br', gzip: '.gz' };
