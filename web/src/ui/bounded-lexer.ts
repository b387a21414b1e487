/** Markdown's lexer, within bounds. */
import { Lexer } from 'marked';
import type { Token, TokensList } from 'marked';

/** Quotations, lists and emphasis within each other that are laid out. */
const DEEPEST = 10;

/**
 * Characters in which marks find each other. The lexer looks for the end of a mark or an address in all that follows, from each place where one may begin: a
 * model that repeats itself within one line would hold up the page for seconds a frame.
 */
const FARTHEST = 2000;

/**
 * Leaves as text what lies deeper: a model that goes round in a circle writes thousands of marks in a row, each a quotation or a list within the one before, and
 * lexer and renderer would run out of stack. Such an answer, and all that stands below it, would not be shown at any visit.
 */
class BoundedLexer extends Lexer {
  #depth = 0;

  override blockTokens(source: string, tokens?: Token[], lastParagraphClipped?: boolean): Token[];
  override blockTokens(source: string, tokens?: TokensList, lastParagraphClipped?: boolean): TokensList;
  override blockTokens(source: string, tokens: Token[] = [], lastParagraphClipped?: boolean): Token[] {
    return this.#within(source, tokens, () => super.blockTokens(source, tokens, lastParagraphClipped));
  }

  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    return this.#within(source, tokens, () => {
      for (let rest = source; ;) {
        const part = firstPart(rest);
        rest = rest.slice(part.length);
        if (rest === '') return super.inlineTokens(part, tokens);
        // At the end of a text the lexer takes a break for none.
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

/** What is read at once of a text: to where marks hardly go on, a line's or else a sentence's end. */
function firstPart(text: string): string {
  if (text.length <= FARTHEST) return text;
  const head = text.slice(0, FARTHEST);
  const ends = [head.lastIndexOf('\n'), Math.max(head.lastIndexOf('. '), head.lastIndexOf('。')), head.lastIndexOf(' ')];
  const end = ends.find((at) => at > 0);
  if (end !== undefined) return head.slice(0, end + 1);
  // A pair of surrogates is one character.
  return /[\uD800-\uDBFF]$/.test(head) ? head.slice(0, -1) : head;
}

/** The blocks of a document, which may end in the middle of anything. */
export function blocksOf(text: string): readonly Token[] {
  return new BoundedLexer({ gfm: true, breaks: true }).lex(text);
}
