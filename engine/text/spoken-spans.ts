/** Parts of a text in Chinese or Japanese as they are read: phonemes, and words of Latin letters between them. */

/** Phonemes of the text's language, or words of Latin letters, which are to be read in English. */
export type SpokenSpan = { readonly phonemes: string } | { readonly latin: string };

/** Joins spans into phonemes; `english` reads the words of Latin letters. */
export async function joinSpans(spans: readonly SpokenSpan[], english: (latin: string) => Promise<string>): Promise<string> {
  const parts = await Promise.all(spans.map(async (span) => ('latin' in span ? ` ${await english(span.latin)} ` : span.phonemes)));
  return parts.join('').replace(/ +(?=[,.!?:;…”)]|$)/g, '').replace(/(?<=^|[“(]) +/g, '').replace(/ +/g, ' '); // prettier-ignore
}
