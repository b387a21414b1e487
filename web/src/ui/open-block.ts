/**
 * The last block of a text that grows, when it is long: its rows, items or lines that are complete are taken out of the text that is lexed
 * again, and put before what is found in the rest.
 *
 * Other blocks are lexed as a whole while they are open. A paragraph of any length becomes a heading by the line below it, what a quotation
 * holds is lexed without its marks, and the item of a list, as a whole, is a text with blocks of its own. Indented code and HTML have no
 * marks to be looked for, and are cheap.
 */
import type { Token, Tokens } from 'marked';

type Divisible = Tokens.Table | Tokens.List | Tokens.Code;

export interface OpenBlock {
  /** What is lexed in place of the text that was taken out, so that the rest is found to be the same block. */
  readonly head: string;
  /** The text that was taken out, and the block as far as it goes. */
  readonly source: string;
  readonly token: Divisible;
}

/** Takes what is complete out of the first block of a text, after what was taken out before; undefined if that is nothing. */
export function divided(text: string, first: Token | undefined, open?: OpenBlock): OpenBlock | undefined {
  if (first?.type === 'table') return dividedTable(text, first as Tokens.Table, open);
  if (first?.type === 'list') return dividedList(text, first as Tokens.List, open);
  if (first?.type === 'code') return dividedCode(text, first as Tokens.Code, open);
  return undefined;
}

/** Joins what was taken out and the block that was found in the rest; undefined if they do not fit each other. */
export function joined({ head, source, token }: OpenBlock, rest: Token | undefined): Divisible | undefined {
  if (rest?.type !== token.type) return undefined;
  const raw = source + rest.raw.slice(head.length);
  if (token.type === 'table') {
    const table = rest as Tokens.Table;
    return { ...table, raw, rows: [...token.rows, ...table.rows] };
  }
  if (token.type === 'code') {
    const code = rest as Tokens.Code;
    return { ...code, raw, text: token.text + code.text };
  }
  const list = rest as Tokens.List;
  // One item may make all of them loose.
  if (list.loose !== token.loose) return undefined;
  return { ...list, raw, start: token.start, items: [...token.items, ...list.items.slice(head === '' ? 0 : 1)] };
}

/**
 * Where the last line begins, after another one, that is complete, not blank, and not what may be the end of code, in the first `end` characters
 * from `begin` on; undefined without one. Whether what comes behind it belongs to the block may still change.
 */
function lastLine(text: string, begin: number, end: number): number | undefined {
  for (let lineEnd = text.lastIndexOf('\n', end); lineEnd > begin;) {
    const at = text.lastIndexOf('\n', lineEnd - 1) + 1;
    if (at <= begin) return undefined;
    if (!/^(?:`{3,}|~{3,})?$/.test(text.slice(at, lineEnd).trim())) return at;
    lineEnd = at - 1;
  }
  return undefined;
}

const linesIn = (text: string): number => text.split('\n').length - 1;

function dividedTable(text: string, table: Tokens.Table, open?: OpenBlock): OpenBlock | undefined {
  const head = open?.head ?? text.slice(0, text.indexOf('\n', text.indexOf('\n') + 1) + 1);
  const at = lastLine(text, head.length, table.raw.length);
  if (head === '' || at === undefined) return undefined;
  const rows = table.rows.slice(0, linesIn(text.slice(head.length, at)));
  const token = { ...table, rows: [...((open?.token as Tokens.Table | undefined)?.rows ?? []), ...rows] };
  return { head, source: (open?.source ?? head) + text.slice(head.length, at), token };
}

/** Of code in a fence that is not closed. */
function dividedCode(text: string, code: Tokens.Code, open?: OpenBlock): OpenBlock | undefined {
  if (code.codeBlockStyle === 'indented' || code.raw.length < text.length) return undefined;
  const head = open?.head ?? text.slice(0, text.indexOf('\n') + 1);
  const at = lastLine(text, head.length, text.length);
  if (head === '' || at === undefined) return undefined;
  let lines = linesIn(text.slice(head.length, at));
  let end = 0;
  while (lines-- > 0) end = code.text.indexOf('\n', end) + 1;
  const before = (open?.token as Tokens.Code | undefined)?.text ?? '';
  return { head, source: (open?.source ?? head) + text.slice(head.length, at), token: { ...code, text: before + code.text.slice(0, end) } };
}

/** Of a list, all items before the last one whose first line is complete. */
function dividedList(text: string, list: Tokens.List, open?: OpenBlock): OpenBlock | undefined {
  const from = open?.head.length ?? 0;
  const taken = list.items.slice(from === 0 ? 0 : 1, -1);
  let at = from + lengthOf(taken);
  if (!text.includes('\n', at)) at -= taken.pop()?.raw.length ?? 0;
  const before = open?.token as Tokens.List | undefined;
  const loose = (before?.loose ?? false) || taken.some(loosens);
  // Until the item that makes the list loose is complete, all of them may still be tight.
  if (taken.length === 0 || loose !== list.loose) return undefined;
  const [mark] = /^ *\S+/.exec(text.slice(at))!;
  const token = { ...list, start: before?.start ?? list.start, items: [...(before?.items ?? []), ...taken] };
  return { head: loose ? `${mark} x\n\n` : '', source: (open?.source ?? '') + text.slice(from, at), token };
}

const lengthOf = (items: readonly Tokens.ListItem[]): number => items.reduce((sum, { raw }) => sum + raw.length, 0);

/** Whether an item that another one follows makes its list loose, by the lexer's own rules. */
function loosens({ raw, tokens }: Tokens.ListItem): boolean {
  return /\n[ \t]*\n[ \t]*$/.test(raw) || tokens.some((token) => token.type === 'space' && /\n.*\n/.test(token.raw));
}
