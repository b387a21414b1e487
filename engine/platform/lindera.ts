/** A dictionary of Japanese for Node and Deno: lindera in WebAssembly, with IPADIC within. */
import type { Morpheme } from './platform.ts';

interface LinderaToken {
  readonly surface: string;
  readonly partOfSpeech: string;
  readonly partOfSpeechSubcategory1?: string;
  readonly conjugationType?: string;
  readonly pronunciation?: string;
}

/** Loads the dictionary, which takes 0.2 s and 130 MB. */
export async function openJapanese(): Promise<(text: string) => Morpheme[]> {
  const { TokenizerBuilder } = await import('lindera-wasm-nodejs-ipadic');
  const builder = new TokenizerBuilder();
  builder.setDictionary('embedded://ipadic');
  builder.setMode('normal');
  const tokenizer = builder.build();
  return (text) =>
    (tokenizer.tokenize(text) as LinderaToken[]).map((token) => ({
      surface: token.surface,
      partOfSpeech: token.partOfSpeech,
      kind: token.partOfSpeechSubcategory1 ?? '',
      // lindera names the two columns the other way round.
      form: token.conjugationType ?? '',
      pronunciation: token.pronunciation ?? '',
    }));
}
