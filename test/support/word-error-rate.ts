/** Word error rate: edits between two texts over the words of the first, ignoring case and punctuation. */
export function wordErrorRate(wanted: string, got: string): number {
  const words = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
  const [a, b] = [words(wanted), words(got)];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (const [i, word] of a.entries()) {
    const next = [i + 1];
    for (const [j, other] of b.entries()) next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (word === other ? 0 : 1)));
    row = next;
  }
  return row[b.length]! / Math.max(1, a.length);
}
