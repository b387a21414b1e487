/**
 * Whether all is tested that there is (`PARLEY_THOROUGH=1`, weekly in CI), or what finds nearly as much in the time of a run that somebody waits for. A page has
 * no environment, and takes the part.
 */
export const THOROUGH = Boolean(globalThis.process?.env['PARLEY_THOROUGH']);

/** All of a list, or its first members. */
export const firstOf = <Item>(count: number, list: readonly Item[]): readonly Item[] => (THOROUGH ? list : list.slice(0, count));
