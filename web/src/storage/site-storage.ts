/** What outlives the page, or a reload of it; undefined where the person lets pages keep nothing: there even to ask for it throws. */
export function siteStorage(kind: 'localStorage' | 'sessionStorage'): Storage | undefined {
  try {
    return globalThis[kind];
  } catch {
    return undefined;
  }
}
