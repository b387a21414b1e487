/** Groups a transcript's tokens into words as OpenAI's code and transformers do: split at spaces, with punctuation joined to its word. */
import { WITHOUT_SPACES } from '../util/spaces.ts';

/** A word of consecutive tokens; its text includes the space before it. */
export interface TokenWord {
  readonly text: string;
  /** Index of the first token, and the number of tokens. */
  readonly first: number;
  readonly count: number;
}

/** ASCII punctuation, in the order of its codes; a piece of it stands alone until it is joined to a word. */
const PUNCTUATION = '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~';
/** Punctuation that is joined to the word after it (if a space precedes it), and to the word before it. */
const OPENING = '"\'“¡¿([{-';
const CLOSING = '"\'.。,，!！?？:：”)]}、';

/** Groups text tokens into words. Every token is in exactly one word, in order. */
export function wordsOf(tokens: readonly number[], decode: (tokens: readonly number[]) => string, language: string): TokenWord[] {
  const pieces = wholeCharacters(tokens, decode);
  // In a language without spaces each character is a word.
  return joinPunctuation(WITHOUT_SPACES.has(language) ? pieces : joinAtSpaces(pieces));
}

/** Splits tokens into the shortest runs that decode to whole characters; a character may take several tokens. */
function wholeCharacters(tokens: readonly number[], decode: (tokens: readonly number[]) => string): TokenWord[] {
  const all = decode(tokens);
  const pieces: TokenWord[] = [];
  let first = 0;
  let length = 0;
  for (let end = 1; end <= tokens.length; end++) {
    const text = decode(tokens.slice(first, end));
    const broken = text.indexOf('\ufffd');
    // A character that is broken in the whole text too will not become whole.
    const isWhole = broken < 0 || (all[length + broken] ?? '\ufffd') === '\ufffd';
    if (!isWhole && end < tokens.length) continue;
    pieces.push({ text, first, count: end - first });
    length += text.length;
    first = end;
  }
  return pieces;
}

const joined = (a: TokenWord, b: TokenWord): TokenWord => ({ text: a.text + b.text, first: a.first, count: a.count + b.count });

/** Joins pieces into words, which begin with a space. Punctuation stays a piece of its own until the next step. */
function joinAtSpaces(pieces: readonly TokenWord[]): TokenWord[] {
  const words: TokenWord[] = [];
  for (const piece of pieces) {
    const last = words.at(-1);
    if (last === undefined || piece.text.startsWith(' ') || PUNCTUATION.includes(piece.text.trim())) words.push(piece);
    else words[words.length - 1] = joined(last, piece);
  }
  return words;
}

/** Joins opening punctuation to the word after it, from the end backwards, and then closing punctuation to the word before it. */
function joinPunctuation(pieces: readonly TokenWord[]): TokenWord[] {
  const opened: TokenWord[] = [];
  for (const piece of pieces.toReversed()) {
    const next = opened.at(-1);
    const opens = piece.text.startsWith(' ') && OPENING.includes(piece.text.trim());
    if (opens && next !== undefined) opened[opened.length - 1] = joined(piece, next);
    else opened.push(piece);
  }
  const words: TokenWord[] = [];
  for (const piece of opened.reverse()) {
    const last = words.at(-1);
    if (last !== undefined && !last.text.endsWith(' ') && CLOSING.includes(piece.text)) words[words.length - 1] = joined(last, piece);
    else words.push(piece);
  }
  return words;
}
