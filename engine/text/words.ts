/** The words of a transcript, as lists of its tokens: cut at spaces as OpenAI's code and transformers cut them, with punctuation at its word. */
import { WITHOUT_SPACES } from '../util/spaces.ts';

/** Some tokens in a row that make a word, and its text with the space before it. */
export interface TokenWord {
  readonly text: string;
  /** Index of the first token, and how many there are. */
  readonly first: number;
  readonly count: number;
}

/** What stands alone until it is joined to a word: ASCII punctuation, in its order. */
const PUNCTUATION = '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~';
/** What opens a word, after a space; what closes the word before it. */
const OPENING = '"\'“¡¿([{-';
const CLOSING = '"\'.。,，!！?？:：”)]}、';

/** Cuts text tokens into words that together are all of them. */
export function wordsOf(tokens: readonly number[], decode: (tokens: readonly number[]) => string, language: string): TokenWord[] {
  const pieces = wholeCharacters(tokens, decode);
  // There each character is a word.
  return joinPunctuation(WITHOUT_SPACES.has(language) ? pieces : joinAtSpaces(pieces));
}

/** A character may take several tokens: the shortest runs whose text is whole. */
function wholeCharacters(tokens: readonly number[], decode: (tokens: readonly number[]) => string): TokenWord[] {
  const all = decode(tokens);
  const pieces: TokenWord[] = [];
  let first = 0;
  let length = 0;
  for (let end = 1; end <= tokens.length; end++) {
    const text = decode(tokens.slice(first, end));
    const broken = text.indexOf('\ufffd');
    // A character that is broken in the whole text too never gets whole.
    const isWhole = broken < 0 || (all[length + broken] ?? '\ufffd') === '\ufffd';
    if (!isWhole && end < tokens.length) continue;
    pieces.push({ text, first, count: end - first });
    length += text.length;
    first = end;
  }
  return pieces;
}

const joined = (a: TokenWord, b: TokenWord): TokenWord => ({ text: a.text + b.text, first: a.first, count: a.count + b.count });

/** A word begins with a space, and so does punctuation without one, for now. */
function joinAtSpaces(pieces: readonly TokenWord[]): TokenWord[] {
  const words: TokenWord[] = [];
  for (const piece of pieces) {
    const last = words.at(-1);
    if (last === undefined || piece.text.startsWith(' ') || PUNCTUATION.includes(piece.text.trim())) words.push(piece);
    else words[words.length - 1] = joined(last, piece);
  }
  return words;
}

/** Opening punctuation goes to the word after it, from the end on; then closing punctuation to the word before it. */
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
