/** What outlives the page, or a reload of it; undefined where the person lets pages keep nothing: there even to ask for it throws. */
export function siteStorage(kind: 'localStorage' | 'sessionStorage'): Storage | undefined {
  try {
    return globalThis[kind];
  } catch {
    return undefined;
  }
}

/** Keeps a text over a reload of the page, where there is room for it: other pages of this address may have filled what they share. */
export function keepForTab(key: string, text: string): void {
  try {
    siteStorage('sessionStorage')?.setItem(key, text);
  } catch {
    // The next visit begins without it.
  }
}
