/** What became of each word that was said, by the cheapest edits between two texts; case and punctuation ignored. */
export interface WordAlignment {
  /** The words that were said, with what was heard in their places: undefined where a word is missing. */
  readonly words: readonly { readonly said: string; readonly heard: string | undefined }[];
  /** Words that were heard between those, and are among the NEAR that were said before or after: `word@place`. */
  readonly doubled: readonly string[];
}

const NEAR = 6;
/** Another word is cheaper than a missing one and one too many, and two other words are dearer: words that are right stay in their places. */
const OTHER = 3;
const MISSING = 2;

/** Aligns what was heard with what was said. */
export function alignWords(said: string, heard: string): WordAlignment {
  const split = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
  const [a, b] = [split(said), split(heard)];
  const costs = [Array.from({ length: b.length + 1 }, (_, j) => MISSING * j)];
  for (const [i, word] of a.entries()) {
    const [above, row] = [costs[i]!, [MISSING * (i + 1)]];
    for (const [j, other] of b.entries())
      row.push(Math.min(row[j]! + MISSING, above[j + 1]! + MISSING, above[j]! + (word === other ? 0 : OTHER)));
    costs.push(row);
  }
  const words: { said: string; heard: string | undefined }[] = [];
  const doubled: string[] = [];
  for (let [i, j] = [a.length, b.length]; i > 0 || j > 0;) {
    const cost = costs[i]![j]!;
    if (i > 0 && j > 0 && cost === costs[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : OTHER))
      words.unshift({ said: a[--i]!, heard: b[--j]! });
    else if (i > 0 && cost === costs[i - 1]![j]! + MISSING) words.unshift({ said: a[--i]!, heard: undefined });
    else if (a.slice(Math.max(0, i - NEAR), i + NEAR).includes(b[--j]!)) doubled.unshift(`${b[j]!}@${i}`);
  }
  return { words, doubled };
}
