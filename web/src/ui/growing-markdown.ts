/** Markdown that grows: blocks that no later text can change are kept as they are, and only what follows them is lexed again. */
import type { Token, Tokens } from 'marked';
import { blocksOf, noLinks } from './bounded-lexer.ts';
import type { Links } from './bounded-lexer.ts';
import { divided, joined } from './open-block.ts';
import type { OpenBlock } from './open-block.ts';

/** Characters from which a block that is still open is kept in parts. */
const LONG = 1000;

/** Blocks that were lexed together and follow each other. */
interface Piece {
  readonly source: string;
  /** Index of its first block. */
  readonly at: number;
}

export class GrowingMarkdown {
  readonly #long: number;
  #text = '';
  /** Where the text begins that is lexed again. */
  #from = 0;
  /** Blocks before it, and the definitions in them. */
  readonly #closed: Token[] = [];
  readonly #links = noLinks();
  /** Definitions in the text that is lexed again. */
  #openLinks: Links = noLinks();
  /** Pieces in which a label occurs, with which a later definition may make a link of it. */
  readonly #mentions = new Map<string, Set<Piece>>();
  /** A long block whose beginning is before the text that is lexed again. */
  #open: OpenBlock | undefined;
  #openFrom = 0;
  #blocks: readonly Token[] = [];

  /** `long` is for tests. */
  constructor(long = LONG) {
    this.#long = long;
  }

  /**
   * Returns the blocks of a text, which are those of its whole; undefined if it does not begin with the text of the call before. A block that
   * has not changed is the same object again.
   */
  grow(text: string): readonly Token[] | undefined {
    if (!text.startsWith(this.#text)) return undefined;
    if (text === this.#text) return this.#blocks;
    this.#text = text;
    const { source, tokens, first } = this.#lex();
    const found = first === undefined ? tokens : [first, ...tokens.slice(1)];
    const blocks = [...this.#closed, ...found.map((token, index) => kept(this.#blocks[this.#closed.length + index], token))];
    this.#blocks = blocks;
    this.#close(source, tokens);
    return blocks;
  }

  /** The text that is lexed, its blocks, and the first of them with all that was taken out of it. */
  #lex(): { source: string; tokens: readonly Token[]; first?: Token | undefined } {
    const source = (this.#open?.head ?? '') + this.#text.slice(this.#from).replace(/\r\n?/g, '\n');
    const links = source.includes(']:') ? Object.assign(noLinks(), this.#links) : this.#links;
    const tokens = blocksOf(source, links);
    const isSame = this.#sameLinks(links);
    if (this.#open === undefined) return { source, tokens };
    const first = isSame ? joined(this.#open, tokens[0]) : undefined;
    if (first !== undefined) return { source, tokens, first };
    // The block has changed as a whole.
    this.#from = this.#openFrom;
    this.#open = undefined;
    return this.#lex();
  }

  /** Returns whether all definitions are as before; if not, lexes again what they are for. */
  #sameLinks(links: Links): boolean {
    const now = noLinks();
    if (links !== this.#links) for (const label of Object.keys(links)) if (!(label in this.#links)) now[label] = links[label]!;
    const before = this.#openLinks;
    const labels = Object.keys({ ...before, ...now });
    const changed = labels.filter((label) => before[label]?.href !== now[label]?.href || before[label]?.title !== now[label]?.title);
    this.#openLinks = now;
    for (const piece of new Set(changed.flatMap((label) => [...(this.#mentions.get(keyOf(label)) ?? [])]))) {
      const tokens = blocksOf(piece.source, links);
      for (const [index, token] of tokens.entries()) this.#closed[piece.at + index] = token;
    }
    if (changed.length > 0) this.#blocks = [];
    return changed.length === 0;
  }

  /** Keeps the blocks that are closed, and takes out of the next one what is complete. */
  #close(source: string, tokens: readonly Token[]): void {
    const head = this.#open?.head.length ?? 0;
    let [end, closed] = [0, 0];
    let at = 0;
    const offsets = tokens.map((token) => (at += token.raw.length) - token.raw.length);
    // Otherwise it is not known where blocks begin.
    if (at !== source.length) return;
    const before = new Run();
    for (const [index, offset] of offsets.entries()) {
      const isFresh = index > 0 && beginsFresh(source.slice(offset), tokens[index]!, before);
      before.add(tokens[index]!, isFresh);
      if (!isFresh) continue;
      this.#keep(end === 0 ? (this.#open?.source ?? '') + source.slice(head, offset) : source.slice(end, offset), index - closed);
      [end, closed] = [offset, index];
    }
    if (end > 0) {
      this.#from += sourceLength(this.#text, this.#from, end - head);
      this.#open = undefined;
    }
    const rest = source.slice(end);
    if (rest.length >= this.#long) this.#divide(rest, tokens[closed]);
    for (const label of Object.keys(this.#openLinks)) if (label in this.#links) delete this.#openLinks[label];
  }

  #keep(source: string, count: number): void {
    const piece: Piece = { source, at: this.#closed.length };
    for (const block of this.#blocks.slice(piece.at, piece.at + count)) this.#closed.push(block);
    this.#define(source);
    for (const key of keysIn(source)) {
      if (!this.#mentions.has(key)) this.#mentions.set(key, new Set());
      this.#mentions.get(key)!.add(piece);
    }
  }

  #divide(rest: string, first: Token | undefined): void {
    const open = divided(rest, first, this.#open);
    if (open === undefined) return;
    const before = this.#open?.source.length ?? 0;
    if (this.#open === undefined) this.#openFrom = this.#from;
    // Rows and code define nothing.
    if (open.token.type === 'list') this.#define(open.source.slice(before));
    this.#from += sourceLength(this.#text, this.#from, open.source.length - before);
    this.#open = open;
  }

  /** Notes the definitions of a text that is not lexed again. */
  #define(source: string): void {
    if (source.includes(']:')) blocksOf(source, this.#links);
  }
}

/**
 * The block that was found at a place before, if it is the same. What follows it may change it without changing its source: blank space becomes
 * a row, or a part of its text.
 */
function kept(before: Token | undefined, token: Token): Token {
  const seen = ({ type, raw, text, loose, rows, items }: Tokens.Generic): unknown[] => [
    type,
    raw,
    text,
    loose,
    rows?.length,
    items?.length,
  ];
  if (before === undefined) return token;
  const was = seen(before);
  return seen(token).every((value, index) => value === was[index]) ? before : token;
}

/** What is known of the blocks since the last blank line, or since the last one that would be found at its place whatever follows. */
class Run {
  length = 0;
  /** Whether all are definitions. */
  isDefinitions = true;
  /**
   * Whether lines that are still to come may change where one of them ends: what a bracket begins may be a definition over several lines, and what
   * belongs to a quotation depends on all lines after it.
   */
  isOpen = false;

  add(block: Token, isFirst: boolean): void {
    if (isFirst || block.type === 'space') [this.length, this.isDefinitions, this.isOpen] = [0, true, false];
    if (block.type === 'space') return;
    this.length++;
    this.isDefinitions &&= block.type === 'def';
    this.isOpen ||= block.type === 'blockquote' || /^ {0,3}\[/m.test(block.raw);
  }
}

/**
 * Whether the lexer finds a block at its place, and the same before it, whatever follows: its first line is complete, and there is a blank line
 * before it, or it ends whatever came before.
 */
function beginsFresh(source: string, token: Token, before: Run): boolean {
  const lineEnd = source.indexOf('\n');
  // To a list, a line of other spaces is blank as well.
  if (token.type === 'space' || lineEnd < 0 || source.slice(0, lineEnd).trim() === '') return false;
  if (before.length === 0) return true;
  if (token.type === 'def') return before.isDefinitions;
  if (before.isOpen) return false;
  // These are the lexer's conditions for the end of both a paragraph and a heading that is underlined.
  if (token.type === 'table') return /^ {0,3}[^\s<[].*\n {0,3}\|?(?:[:\- ]*\|)+[:\- ]*\n/.test(source);
  return token.type === 'hr' || (STARTING.has(token.type) && /^ {0,3}(?:#{1,6}\s|>|`{3}|~{3}|(?:[*+-]|1[.)]) [ \t]*[^ \t\n])/.test(source));
}

const STARTING: ReadonlySet<string> = new Set(['heading', 'blockquote', 'code', 'list']);

/** Characters of a text, from a place on, that make up so many once every line ends in one character. */
function sourceLength(text: string, from: number, length: number): number {
  let end = from + length;
  for (let at = text.indexOf('\r\n', from); at >= 0 && at < end; at = text.indexOf('\r\n', at + 2)) end++;
  return end - from;
}

/** A label without what differs between a definition and its mention in a quotation, a list or a table. */
const keyOf = (label: string): string =>
  label
    .toLowerCase()
    .toUpperCase()
    .replace(/[^\p{L}\p{N}]/gu, '');

/** Keys of all labels that may be mentioned in a text. */
function keysIn(source: string): Set<string> {
  const labels = Array.from(source.matchAll(/\\[\s\S]|\[(?=((?:\\[\s\S]|[^[\]\\])+)\])/g), ([, label]) => label);
  return new Set(labels.filter((label) => label !== undefined).map(keyOf));
}
