/** Added tokens: a text is first split where it spells one, as in Hugging Face's tokenizers; only the rest is tokenised. */

/** The fields of an entry of tokenizer.json's `added_tokens` that are read here. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special?: unknown;
  /** Match only as a whole word. */
  readonly single_word?: unknown;
  /** Whether a match swallows the white space before (`lstrip`) or after it (`rstrip`). */
  readonly lstrip?: unknown;
  readonly rstrip?: unknown;
  /** Match in the normalised text instead of the text as given; default: unless the token is special. */
  readonly normalized?: unknown;
}

/** A stretch of a text: an added token, or normalised text between two of them. */
export interface Stretch {
  readonly token: AddedToken | undefined;
  readonly text: string;
  /** Whether the stretch begins the text. */
  readonly isFirst: boolean;
}

interface Node {
  readonly next: Map<string, Node>;
  token: AddedToken | undefined;
}

const WORD_BEFORE = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]$/u;
const WORD_BEHIND = /^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]/u;
const SPACE = /\p{White_Space}/u;

/** Splits texts at added tokens. */
export class AddedTokens {
  readonly #raw: Node;
  readonly #normalized: Node;
  readonly #normalize: (text: string) => string;

  constructor(tokens: readonly AddedToken[], normalize: (text: string) => string) {
    const isNormalized = ({ normalized, special }: AddedToken): boolean => (normalized ?? special !== true) === true;
    this.#raw = treeOf(tokens.filter((token) => !isNormalized(token)).map((token) => [token.content, token]));
    this.#normalized = treeOf(tokens.filter(isNormalized).map((token) => [normalize(token.content), token]));
    this.#normalize = normalize;
  }

  /** Splits a text into stretches. Tokens that match the text as given take precedence over those that match its normalised form. */
  cut(text: string): readonly Stretch[] {
    return cutAt(text, this.#raw).flatMap((stretch) => {
      if (stretch.token) return [stretch];
      return cutAt(this.#normalize(stretch.text), this.#normalized).map((part) => ({ ...part, isFirst: part.isFirst && stretch.isFirst }));
    });
  }
}

function treeOf(spelled: readonly (readonly [string, AddedToken])[]): Node {
  const root: Node = { next: new Map(), token: undefined };
  for (const [content, token] of spelled) {
    let node = root;
    for (let i = 0; i < content.length; i++) {
      const next: Node = node.next.get(content[i]!) ?? { next: new Map(), token: undefined };
      node.next.set(content[i]!, next);
      node = next;
    }
    if (content !== '') node.token = token;
  }
  return root;
}

/** Splits a text at the tokens of a trie, leftmost first; of several tokens at one place the longest matches. */
function cutAt(text: string, root: Node): Stretch[] {
  const stretches: Stretch[] = [];
  let done = 0;
  for (let at = 0; at < text.length; at++) {
    const found = longest(text, at, root);
    if (!found) continue;
    const { token, end } = found;
    const isApart = token.single_word !== true || !(WORD_BEFORE.test(text.slice(Math.max(0, at - 2), at)) || WORD_BEHIND.test(text.slice(end, end + 2))); // prettier-ignore
    if (isApart) {
      let [from, to] = [at, end];
      while (token.lstrip === true && from > done && SPACE.test(text[from - 1]!)) from--;
      while (token.rstrip === true && to < text.length && SPACE.test(text[to]!)) to++;
      if (from > done) stretches.push({ token: undefined, text: text.slice(done, from), isFirst: done === 0 });
      stretches.push({ token, text: token.content, isFirst: from === 0 });
      done = to;
    }
    at = Math.max(end, done) - 1;
  }
  if (done < text.length) stretches.push({ token: undefined, text: text.slice(done), isFirst: done === 0 });
  return stretches;
}

function longest(text: string, at: number, root: Node): { readonly token: AddedToken; readonly end: number } | undefined {
  let found: { readonly token: AddedToken; readonly end: number } | undefined;
  let node = root.next.get(text[at]!);
  for (let end = at + 1; node; node = root === node || end >= text.length ? undefined : node.next.get(text[end++]!)) {
    if (node.token) found = { token: node.token, end };
  }
  return found;
}
