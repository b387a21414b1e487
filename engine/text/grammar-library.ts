/** The grammar library (xgrammar in WASM), as the thread of grammar-worker.ts uses it: its types, and what it compiles. */
import type { NormalSchema } from './schema-normal.ts';
import { numberRules } from './number-grammar.ts';
import { CLOSE_CALL, OPEN_CALL } from './output-parser.ts';

/** The parts of @mlc-ai/web-xgrammar in use. */
export interface GrammarLibrary {
  readonly TokenizerInfo: {
    createTokenizerInfo(
      vocabulary: string[],
      type: string,
      prependSpace: boolean,
      size: number,
      stopTokenIds: number[],
    ): Promise<Disposable>;
  };
  readonly GrammarCompiler: { createGrammarCompiler(info: Disposable, cache?: boolean): Promise<LibraryCompiler> };
  readonly Testings: {
    /** `indent` -1 = on one line (undefined would be 2). */
    _jsonSchemaToEBNF(
      schema: string,
      anyWhitespace: boolean,
      indent: number,
      separators: [string, string] | undefined,
      strict: boolean,
      maxWhitespace?: number,
    ): Promise<string>;
  };
  readonly GrammarMatcher: { createGrammarMatcher(grammar: Disposable): Promise<LibraryMatcher> };
}

export interface Disposable {
  dispose(): void;
}

export interface LibraryCompiler extends Disposable {
  compileJSONSchema(
    schema: string, anyWhitespace: boolean, indent: undefined, separators: undefined, strict: boolean, maxWhitespace?: number,
  ): Promise<Disposable>; // prettier-ignore
  compileGrammar(ebnf: string): Promise<Disposable>;
  compileStructuralTag(tag: unknown): Promise<Disposable>;
}

export interface LibraryMatcher extends Disposable {
  acceptToken(token: number): boolean;
  getNextTokenBitmask(): Promise<Int32Array>;
  rollBack(count: number): void;
}

/** What an answer is held to, checked and normalised. */
export type GrammarSource =
  JsonSource | CallsSource | { readonly type: 'json_or_calls'; readonly json: JsonSource; readonly calls: CallsSource };
export type JsonSource = { readonly type: 'json_object' } | { readonly type: 'json_schema'; readonly schema: NormalSchema };
export interface CallsSource {
  readonly type: 'tool_calls';
  readonly tools: readonly { readonly name: string; readonly schema: NormalSchema }[];
  readonly single: boolean;
}

/** More runs of white space than this help no reader and let a small model ramble. */
const MAX_WHITESPACE = 2;

const ANY_OBJECT = '{"type":"object"}';

/** Compiles a grammar; after an error the library must not be used again, unless it is an EngineError. */
export async function compileGrammar(library: GrammarLibrary, compiler: LibraryCompiler, source: GrammarSource): Promise<Disposable> {
  if (source.type === 'json_object') return compiler.compileJSONSchema(ANY_OBJECT, true, undefined, undefined, false, MAX_WHITESPACE);
  if (source.type === 'json_schema') return compiler.compileGrammar(await jsonGrammar(library, source));
  if (source.type === 'tool_calls')
    return compiler.compileStructuralTag({ type: 'structural_tag', format: await callsFormat(library, source) });
  // The library takes no bare grammar beside tags that may repeat.
  const json = { type: 'tag', begin: '', content: { type: 'grammar', grammar: await jsonGrammar(library, source.json) }, end: '' };
  const elements = [tagsFormat([json], true), await callsFormat(library, source.calls)];
  return compiler.compileStructuralTag({ type: 'structural_tag', format: { type: 'or', elements } });
}

async function jsonGrammar({ Testings: { _jsonSchemaToEBNF: toEbnf } }: GrammarLibrary, source: JsonSource): Promise<string> {
  if (source.type === 'json_object') return toEbnf(ANY_OBJECT, true, -1, undefined, false, MAX_WHITESPACE);
  const rules = rulesOf(source.schema);
  return rules(await toEbnf(source.schema.schema, true, -1, undefined, true, MAX_WHITESPACE));
}

async function callsFormat({ Testings: { _jsonSchemaToEBNF: toEbnf } }: GrammarLibrary, source: CallsSource): Promise<object> {
  const tags = source.tools.map(async ({ name, schema }) => ({
    type: 'tag',
    begin: `${OPEN_CALL}\n{"name": ${JSON.stringify(name)}, "arguments": `,
    // As EBNF with fixed separators: inside a tag the library's own schemas allow white space without end.
    content: { type: 'grammar', grammar: rulesOf(schema)(await toEbnf(schema.schema, false, -1, [', ', ': '], true)) },
    end: `}\n${CLOSE_CALL}`,
  }));
  return tagsFormat(await Promise.all(tags), source.single);
}

/** One of the tags, or several on lines of their own. */
const tagsFormat = (tags: readonly object[], single: boolean): object => ({
  type: 'tags_with_separator',
  tags,
  separator: '\n',
  at_least_one: true,
  stop_after_first: single,
});

/** What the library writes for a character of a text of bounded length, which may be a control character, and what JSON allows. */
const LOOSE_CHARACTER = '[^"\\\\\\r\\n]';
const CHARACTER = '[^\\0-\\x1f\\"\\\\\\r\\n]';

/** Puts the rules of numbers in place of their constants. Made before the library is asked: it may throw EngineError. */
function rulesOf({ numbers }: NormalSchema): (ebnf: string) => string {
  const rules = numbers.map(([constant, range], i) => ({ constant, name: `bounded_number_${i}`, text: numberRules(`bounded_number_${i}`, range) })); // prettier-ignore
  return (ebnf) =>
    rules.reduce((text, { constant, name }) => text.replaceAll(`"\\"${constant}\\""`, name), ebnf.replaceAll(LOOSE_CHARACTER, CHARACTER)) +
    rules.map(({ text }) => text).join('');
}
