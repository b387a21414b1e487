/** Returns localStorage or sessionStorage; undefined where the person lets pages store nothing, where even reading the property throws. */
export function siteStorage(kind: 'localStorage' | 'sessionStorage'): Storage | undefined {
  try {
    return globalThis[kind];
  } catch {
    return undefined;
  }
}

/** Keeps a text over a reload of the page, if there is room: other pages of this origin may have filled the storage they share. */
export function keepForTab(key: string, text: string): void {
  try {
    siteStorage('sessionStorage')?.setItem(key, text);
  } catch {
    // No room: the text does not survive the reload.
  }
}
