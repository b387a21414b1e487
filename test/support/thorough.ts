/**
 * Whether all is tested that there is (`PARLEY_THOROUGH=1`, weekly in CI), or what finds nearly as much in the time of a run that somebody waits for. A page has
 * no environment, and takes the part.
 */
export const THOROUGH = Boolean(globalThis.process?.env['PARLEY_THOROUGH']);

/** All of a list, or its first members. */
export const firstOf = <Item>(count: number, list: readonly Item[]): readonly Item[] => (THOROUGH ? list : list.slice(0, count));

/** What the playground's address ends with where its Device page is to test every fourth kernel case and the first of each kernel. */
export const KERNELS = THOROUGH ? '' : '?kernels=some';
/** What the page then calls the thread that tests them, which has nothing else to be told by before its first import. */
export const SOME_CASES = 'parley self-test of some cases';
