/** Text direction of a field. */

/**
 * Number of characters above which finding each paragraph's direction takes the browser too long (Chromium: ten seconds for a paste of half
 * a megabyte).
 */
const LONG = 20_000;
/** Characters in which the first letter, which sets the direction of a long text, is searched for. */
const BEGINNING = 1_000;
const RIGHT_TO_LEFT = /^[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

/** Value of `dir`: each paragraph by itself, or for a long text the direction of its first letter. */
export function directionOf(text: string): 'auto' | 'ltr' | 'rtl' {
  if (text.length < LONG) return 'auto';
  const letter = /\p{L}/u.exec(text.slice(0, BEGINNING))?.[0] ?? '';
  return RIGHT_TO_LEFT.test(letter) ? 'rtl' : 'ltr';
}

/** Sets the direction before a long text is pasted into a field, because the browser would otherwise scan all of it at once. */
export function directBeforePaste({
  currentTarget: area,
  clipboardData,
}: ClipboardEvent & { readonly currentTarget: HTMLTextAreaElement }): void {
  area.dir = directionOf(area.value + (clipboardData?.getData('text/plain') ?? ''));
}
