/**
 * Scans a streamed JSON object or list, and repairs what models write instead of JSON, if it has only one meaning: strings and keys in single quotes, keys without
 * quotes, `True`, `False` and `None`, trailing commas, control characters in strings, `\'`, and backslashes in a string that has none of JSON's letter escapes (`\d`,
 * `C:\Users`). Valid JSON is returned as written. From the first character that cannot be read, or has several meanings, everything is returned as written too: the
 * result is then no JSON, so that it is not mistaken for what was meant. The result does not depend on how the stream is divided into pieces.
 */

/** Output for a piece: the text, the number of characters that were read, and whether the value has ended. */
export interface ScannedPiece {
  readonly text: string;
  readonly taken: number;
  readonly ended: boolean;
}

/** What is expected next, outside of strings; an `item` is a value or the list's end. */
type Next = 'value' | 'item' | 'key' | 'colon' | 'comma';

const WORDS: ReadonlyMap<string, string> = new Map([
  ['true', 'true'], ['false', 'false'], ['null', 'null'], ['True', 'true'], ['False', 'false'], ['None', 'null'],
]); // prettier-ignore
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const NAME = /^[A-Za-z_$][\w$-]*$/;
/** Characters that JSON has after a backslash, besides `u`: punctuation, and letters, of which a model may have meant the backslash literally. */
const MARKS = '"\\/';
const LETTERS = 'bfnrt';
/** Escapes that JSON lacks and whose meaning is unclear: character codes of other languages, and line ends. */
const UNCLEAR = /^\\(?:[x0\0-\x1f]|u[\da-fA-F])/;
/** Most characters of a word, number or key without quotes. */
const LONGEST_WORD = 512;

/** A scanner of one value. */
export class JsonScan {
  /** Closing brackets of the open ones. */
  #open: string[] = [];
  #next: Next = 'value';
  /** Quote of the current string; '' = outside of strings. */
  #quote = '';
  /** Text held back because what follows tells its meaning: an escape; likewise a word, and a comma with the white space after it. */
  #escape = '';
  #word = '';
  #comma = '';
  /** Whether the current string has had letter escapes of JSON. */
  #hasLetters = false;
  /** The current string from its first backslash that is no JSON escape, as written and repaired. The string's end tells which of the two counts. */
  #raw = '';
  #mended = '';
  #ended = false;
  /** Depth of open brackets, once text is returned as written; undefined before that. */
  #depth: number | undefined;

  /** Whether something could not be read, so that the output is no JSON. */
  get isLost(): boolean {
    return this.#depth !== undefined;
  }

  /** Whether the scanner is within a string of a value that has been readable so far. */
  get isInString(): boolean {
    return this.#quote !== '' && !this.isLost;
  }

  /** A copy in the same state. */
  clone(): JsonScan {
    const copy = new JsonScan();
    copy.#open = [...this.#open];
    copy.#next = this.#next;
    copy.#quote = this.#quote;
    copy.#escape = this.#escape;
    copy.#word = this.#word;
    copy.#comma = this.#comma;
    copy.#hasLetters = this.#hasLetters;
    copy.#raw = this.#raw;
    copy.#mended = this.#mended;
    copy.#ended = this.#ended;
    copy.#depth = this.#depth;
    return copy;
  }

  /** Scans the next piece, from the character `from`, up to the bracket that ends the value. */
  push(piece: string, from = 0): ScannedPiece {
    let text = '';
    // End of the text that was returned.
    let done = from;
    let at = from;
    while (at < piece.length && !this.#ended) {
      at = this.#plainEnd(piece, at);
      if (at === piece.length || this.#ended) break;
      const c = piece[at]!;
      const written = this.#take(c);
      if (written !== c) {
        text += piece.slice(done, at) + written;
        done = at + 1;
      }
      at++;
    }
    return { text: text + piece.slice(done, at), taken: at - from, ended: this.#ended };
  }

  /** Returns the remaining text of a value that is said to be complete: closing brackets, if only those are missing, else the same as `cut`. */
  close(): string {
    const word = this.#word === '' ? '' : this.#endWord();
    if (this.isLost || this.#quote !== '' || (this.#next !== 'comma' && this.#comma === '')) return word + this.cut();
    const closed = word + this.#comma.slice(1) + this.#open.reverse().join('');
    this.#comma = '';
    this.#ended = true;
    return closed;
  }

  /** Returns the text held back, as written, of a value that was cut off. */
  cut(): string {
    const held = this.#raw === '' ? this.#escape + this.#word + this.#comma : this.#raw;
    this.#escape = this.#word = this.#comma = this.#raw = this.#mended = '';
    return held;
  }

  /** End of the characters from `from` on that are returned as written. */
  #plainEnd(piece: string, from: number): number {
    if (this.isLost) return this.#passEnd(piece, from);
    let at = from;
    if (this.#quote === '' || this.#escape !== '' || this.#raw !== '') return at;
    while (at < piece.length) {
      if (isSpecial(piece.charCodeAt(at))) {
        // A complete escape of JSON.
        const next = piece[at] === '\\' ? piece[at + 1] : undefined;
        if (next === undefined || !(MARKS + LETTERS).includes(next)) break;
        this.#hasLetters ||= LETTERS.includes(next);
        at++;
      }
      at++;
    }
    return at;
  }

  /** End of unreadable text: after its last bracket, or with the piece. Only double quotes begin a string in it. */
  #passEnd(piece: string, from: number): number {
    for (let at = from; at < piece.length; at++) {
      const c = piece[at]!;
      if (this.#escape !== '') this.#escape = '';
      else if (this.#quote !== '' && c === '\\') this.#escape = c;
      else if (this.#quote !== '') this.#quote = c === this.#quote ? '' : this.#quote;
      else if (c === '"') this.#quote = c;
      else if (c === '{' || c === '[') this.#depth!++;
      else if ((c === '}' || c === ']') && --this.#depth! === 0) {
        this.#ended = true;
        return at + 1;
      }
    }
    return piece.length;
  }

  #take(c: string): string {
    if (this.#quote !== '') {
      const text = this.#escape === '' ? this.#takeInString(c) : this.#takeEscaped(c);
      return this.#raw === '' ? text : this.#hold(c, text);
    }
    if (isWord(c.charCodeAt(0))) return this.#takeInWord(c);
    if (this.#word !== '') {
      const text = this.#endWord();
      return text + (this.isLost ? this.#lose(c) : this.#take(c));
    }
    if (c === ' ' || c === '\n' || c === '\t' || c === '\r') {
      if (this.#comma === '') return c;
      this.#comma += c;
      return '';
    }
    return this.#takeMark(c);
  }

  #takeMark(c: string): string {
    const isValue = this.#next === 'value' || this.#next === 'item';
    if (isValue && (c === '{' || c === '[')) {
      this.#open.push(c === '{' ? '}' : ']');
      return this.#after(c, c === '{' ? 'key' : 'item');
    }
    if (c === this.#open.at(-1) && this.#next !== 'value' && this.#next !== 'colon') {
      this.#open.pop();
      this.#ended = this.#open.length === 0;
      this.#comma = this.#comma.slice(1);
      return this.#after(c, 'comma');
    }
    if ((c === '"' || c === "'") && this.#open.length > 0 && (isValue || this.#next === 'key')) {
      this.#quote = c;
      this.#hasLetters = false;
      return this.#after('"', isValue ? 'comma' : 'colon');
    }
    if (c === ':' && this.#next === 'colon') return this.#after(c, 'value');
    if (c !== ',' || this.#next !== 'comma') return this.#lose(c);
    this.#comma = c;
    this.#next = this.#open.at(-1) === '}' ? 'key' : 'item';
    return '';
  }

  #takeInString(c: string): string {
    if (c === '\\') {
      this.#escape = c;
      return '';
    }
    if (c === this.#quote) {
      this.#quote = '';
      return '"';
    }
    return c < ' ' || c === '"' ? JSON.stringify(c).slice(1, -1) : c;
  }

  /** Takes a character of an escape. The backslashes of one string are either literal or JSON's letter escapes, but not both. */
  #takeEscaped(c: string): string {
    const begun = this.#escape;
    const escape = begun + c;
    if (/^\\u[\da-fA-F]{0,3}$/.test(escape)) {
      this.#escape = escape;
      return '';
    }
    const isLetter = /^\\(?:[bfnrt]|u[\da-fA-F]{4})$/.test(escape);
    const isMark = /^\\["\\/']$/.test(escape);
    const isUnclear = isLetter ? this.#raw !== '' : !isMark && (this.#hasLetters || UNCLEAR.test(escape));
    if (isUnclear) return this.#lose(c);
    this.#escape = '';
    this.#hasLetters ||= isLetter;
    if (isLetter || isMark) return c === "'" ? c : escape;
    if (this.#raw === '') this.#raw = begun;
    return `\\${begun}${this.#takeInString(c)}`;
  }

  /** Holds text from a backslash that is no JSON escape to the end of the string. */
  #hold(c: string, text: string): string {
    this.#raw += c;
    this.#mended += text;
    if (this.#quote !== '') return '';
    const mended = this.#mended;
    this.#raw = this.#mended = '';
    return mended;
  }

  #takeInWord(c: string): string {
    const mayBegin = this.#open.length > 0 && this.#next !== 'colon' && this.#next !== 'comma';
    if (!mayBegin || this.#word.length >= LONGEST_WORD) return this.#lose(c);
    this.#word += c;
    return this.#after('', this.#next);
  }

  #endWord(): string {
    const isKey = this.#next === 'key';
    const json = isKey ? (NAME.test(this.#word) ? `"${this.#word}"` : undefined) : (WORDS.get(this.#word) ?? (NUMBER.test(this.#word) ? this.#word : undefined)); // prettier-ignore
    if (json === undefined) return this.#lose('');
    this.#word = '';
    return this.#after(json, isKey ? 'colon' : 'comma');
  }

  /** Returns a text after the comma that was held back. */
  #after(text: string, next: Next): string {
    const comma = this.#comma;
    this.#comma = '';
    this.#next = next;
    return comma + text;
  }

  /** From here on everything is returned as written. */
  #lose(c: string): string {
    const held = this.cut();
    this.#depth ??= this.#open.length;
    // A string goes on behind the escape that was lost.
    this.#passEnd(c, 0);
    return held + c;
  }
}

/** Repairs a JSON object or list; undefined if it cannot be read, or has several meanings. */
export function mendJson(text: string): string | undefined {
  const scan = new JsonScan();
  const whole = text.trim();
  const { text: json, taken, ended } = scan.push(whole);
  return ended && !scan.isLost && taken === whole.length ? json : undefined;
}

/** Parses JSON, or else what `mend` makes of it; undefined if neither can be parsed. */
export function readJson(text: string, mend: (text: string) => string | undefined = mendJson): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    const mended = mend(text);
    return mended === undefined ? undefined : JSON.parse(mended);
  }
}

/** Whether a character of a string ends it, escapes, or must be escaped. */
const isSpecial = (code: number): boolean => code < 0x20 || code === 0x22 || code === 0x27 || code === 0x5c;

/** Whether a character may stand in a word, a number or a key without quotes: letters, digits and `_$.+-`. */
function isWord(code: number): boolean {
  if (code < 0x30) return code === 0x2d || code === 0x2e || code === 0x2b || code === 0x24;
  return code <= 0x39 || (code >= 0x41 && code <= 0x5a) || code === 0x5f || (code >= 0x61 && code <= 0x7a);
}
