/** Markdown's lexer, within bounds. */
import { Lexer } from 'marked';
import type { Token, TokensList } from 'marked';

/** Quotations, lists and emphasis within each other that are laid out. */
const DEEPEST = 10;
/** Marks of emphasis and code in a paragraph times its characters: for each mark the lexer looks through the rest for another. */
const MOST_TO_SEARCH = 2_000_000;

/**
 * Leaves as text what would take too long, or too much stack: a model that goes round in a circle writes thousands of marks in a row, each a quotation or a
 * list within the one before, or names such as `_a_a_a`, of which 20,000 characters take seconds each time that a word is added. Such an answer, and all that
 * stands below it, would not be shown at any visit.
 */
export class BoundedLexer extends Lexer {
  #depth = 0;

  override blockTokens(source: string, tokens?: Token[], lastParagraphClipped?: boolean): Token[];
  override blockTokens(source: string, tokens?: TokensList, lastParagraphClipped?: boolean): TokensList;
  override blockTokens(source: string, tokens: Token[] = [], lastParagraphClipped?: boolean): Token[] {
    return this.#within(source, tokens, () => super.blockTokens(source, tokens, lastParagraphClipped));
  }

  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    const marks = source.match(/[*_~`]/g) ?? [];
    if (marks.length * source.length > MOST_TO_SEARCH) return asText(source, tokens);
    return this.#within(source, tokens, () => super.inlineTokens(source, tokens));
  }

  #within(source: string, tokens: Token[], lex: () => Token[]): Token[] {
    if (this.#depth === DEEPEST) return asText(source, tokens);
    this.#depth++;
    const found = lex();
    this.#depth--;
    return found;
  }
}

function asText(source: string, tokens: Token[]): Token[] {
  tokens.push({ type: 'text', raw: source, text: source });
  return tokens;
}
