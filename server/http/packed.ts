/** How the build and the server name compressed copies of a file: one file beside it for each encoding. */

/** Suffix of the copy in each content encoding, best first. */
export const PACKED_SUFFIXES: Readonly<Record<string, string>> = { br: '.br', gzip: '.gz' };
