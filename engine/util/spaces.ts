/** Spaces between what is said one after the other. */

/** ISO 639-1 of languages that are written without spaces between words. */
export const WITHOUT_SPACES: ReadonlySet<string> = new Set(['zh', 'ja', 'th', 'lo', 'my', 'yue']);

/** What stands between a segment's text and the text before it: models write no space at its start in languages without any, and may forget it in others. */
export function spaceBefore(text: string, language = 'en'): string {
  return /^\s/.test(text) || WITHOUT_SPACES.has(language) ? '' : ' ';
}
