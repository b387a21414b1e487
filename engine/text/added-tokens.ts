/** Where a text spells added tokens: Hugging Face's tokenizers cut it there first. */

/** An entry of tokenizer.json's `added_tokens`, as far as we read it. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special?: unknown;
  /** Stands for itself only where no word goes on beside it. */
  readonly single_word?: unknown;
  /** Takes the white space in front of it, or behind it. */
  readonly lstrip?: unknown;
  readonly rstrip?: unknown;
  /** Is looked for in the normalised text. */
  readonly normalized?: unknown;
}

/** A stretch of a text: an added token, or what lies between two. */
export interface Stretch {
  readonly token: AddedToken | undefined;
  readonly text: string;
  /** Whether it is the first of the text. */
  readonly isFirst: boolean;
}

interface Node {
  readonly next: Map<string, Node>;
  token: AddedToken | undefined;
}

const WORD_BEFORE = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]$/u;
const WORD_BEHIND = /^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]/u;
const SPACE = /\p{White_Space}/u;

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

  /** The stretches of a text, normalised where they are no token. Those that are looked for in the text as it is come first. */
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

/** At the leftmost place where a token is spelled the longest one counts. */
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
