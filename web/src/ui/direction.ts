/** Which way the text of a field runs. */

/** Characters from which the browser takes seconds to find the direction of each paragraph again (Chromium: ten for half a megabyte that is pasted). */
const LONG = 20_000;
/** The first letter says it, if there is one near the beginning. */
const BEGINNING = 1_000;
const RIGHT_TO_LEFT = /^[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

/** For `dir`: each paragraph by itself, and a long text as its first letter. */
export function directionOf(text: string): 'auto' | 'ltr' | 'rtl' {
  if (text.length < LONG) return 'auto';
  const letter = /\p{L}/u.exec(text.slice(0, BEGINNING))?.[0] ?? '';
  return RIGHT_TO_LEFT.test(letter) ? 'rtl' : 'ltr';
}

/** Before a long text is pasted into a field, which the browser would else look through at once. */
export function directBeforePaste({
  currentTarget: area,
  clipboardData,
}: ClipboardEvent & { readonly currentTarget: HTMLTextAreaElement }): void {
  area.dir = directionOf(area.value + (clipboardData?.getData('text/plain') ?? ''));
}
