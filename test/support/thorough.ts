/**
 * Whether all is tested that there is (`PARLEY_THOROUGH=1`, weekly in CI), or what finds nearly as much in the time of a run that somebody waits for. A page has
 * no environment, and takes the part.
 */
export const THOROUGH = Boolean(globalThis.process?.env['PARLEY_THOROUGH']);

/** All of a list, or its first members. */
export const firstOf = <Item>(count: number, list: readonly Item[]): readonly Item[] => (THOROUGH ? list : list.slice(0, count));

/** The name of a page's self-test when a test wants no more of it than one case of every kernel text. Without it a page tests all cases. */
export const SELF_TEST_OF_TEXTS = 'parley self-test, texts';

/** Whether kernel cases are left out whose kernels' texts other cases have compared, with whatever numbers: in pages that a test has told so. */
export const TEXTS_ONLY = globalThis.process === undefined && (globalThis as { readonly name?: string }).name === SELF_TEST_OF_TEXTS;

/** For a page, before its own scripts run: its self-test tests one case of every kernel text. */
export function testTextsOnly(name: string): void {
  const Whole = globalThis.Worker;
  globalThis.Worker = class extends Whole {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(url, options?.name === 'parley self-test' ? { ...options, name } : options);
    }
  };
}
