/** Spaces between the segments of a transcript. */

/** Codes of languages that are written without spaces between words. */
export const WITHOUT_SPACES: ReadonlySet<string> = new Set(['zh', 'ja', 'th', 'lo', 'my', 'yue']);

/** The space to insert before a segment's text; '' if it has one or its language uses none. Models sometimes forget it. */
export function spaceBefore(text: string, language = 'en'): string {
  return /^\s/.test(text) || WITHOUT_SPACES.has(language) ? '' : ' ';
}
