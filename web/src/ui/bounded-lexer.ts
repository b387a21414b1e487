/** A Markdown lexer with bounded depth and time. */
import { Lexer, Tokenizer } from 'marked';
import type { Token, Tokens, TokensList } from 'marked';

/** Definitions that links refer to, by their labels; without a prototype. */
export type Links = TokensList['links'];

/** Most levels of nested quotations, lists and emphasis that are rendered. */
const DEEPEST = 10;

/**
 * Most characters within which a mark may find its end. From each place where a mark or an address may begin, the lexer searches all of the
 * text that follows: a model that repeats itself within one line would block the page for seconds per frame.
 */
const FARTHEST = 2000;

/**
 * Renders deeper nesting as plain text: a model that repeats itself may write thousands of marks in a row, each a quotation or a list
 * within the one before, and lexer and renderer would overflow the stack. Such an answer, and everything below it, could never be shown
 * again.
 */
class BoundedLexer extends Lexer {
  #depth = 0;

  override blockTokens(source: string, tokens?: Token[], lastParagraphClipped?: boolean): Token[];
  override blockTokens(source: string, tokens?: TokensList, lastParagraphClipped?: boolean): TokensList;
  override blockTokens(source: string, tokens: Token[] = [], lastParagraphClipped?: boolean): Token[] {
    return this.#within(source, tokens, () => super.blockTokens(source, tokens, lastParagraphClipped));
  }

  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    // An `<a>` left open ends with its block, or every later address would not be a link.
    if (this.#depth === 0) this.state.inLink = false;
    return this.#within(source, tokens, () => {
      for (let rest = source; ;) {
        const part = firstPart(rest);
        rest = rest.slice(part.length);
        if (rest === '') return super.inlineTokens(part, tokens);
        // At the end of a text the lexer does not take spaces and a newline for a line break.
        super.inlineTokens(part.replace(/ *\n$/, ''), tokens);
        if (part.endsWith('\n')) tokens.push({ type: 'br', raw: '\n' });
      }
    });
  }

  #within(source: string, tokens: Token[], lex: () => Token[]): Token[] {
    if (this.#depth === DEEPEST) return (tokens.push({ type: 'text', raw: source, text: source }), tokens);
    this.#depth++;
    const found = lex();
    this.#depth--;
    return found;
  }
}

/** Ends definitions at a blank line, as CommonMark does: a title's quotation mark may come any time later, and take back all blocks in between. */
class BoundedTokenizer extends Tokenizer {
  override def(source: string): Tokens.Def | undefined {
    if (!/^ {0,3}\[/.test(source)) return undefined;
    const end = source.search(/\n[ \t]*\n/);
    return super.def(end < 0 ? source : source.slice(0, end + 1));
  }
}

/**
 * Returns the first part of a text, to be lexed on its own: up to the end of a line, which marks rarely cross, or else of a sentence or
 * word.
 */
function firstPart(text: string): string {
  if (text.length <= FARTHEST) return text;
  const head = text.slice(0, FARTHEST);
  const ends = [head.lastIndexOf('\n'), Math.max(head.lastIndexOf('. '), head.lastIndexOf('。')), head.lastIndexOf(' ')];
  const end = ends.find((at) => at > 0);
  if (end !== undefined) return head.slice(0, end + 1);
  // Never between the two halves of a surrogate pair.
  return /[\uD800-\uDBFF]$/.test(head) ? head.slice(0, -1) : head;
}

/** Lexes a document, which may end in the middle of anything, into blocks. Its definitions are added to `links`. */
export function blocksOf(text: string, links: Links = noLinks()): Token[] {
  const lexer = new BoundedLexer({ gfm: true, breaks: true, tokenizer: new BoundedTokenizer() });
  lexer.tokens.links = links;
  return [...lexer.lex(text)];
}

export const noLinks = (): Links => Object.create(null) as Links;
