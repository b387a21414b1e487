/** Compiles grammars with the grammar library (xgrammar in WASM) for the thread of grammar-worker.ts, and types the library. */
import type { NormalSchema } from './schema-normal.ts';
import { numberRules } from './number-grammar.ts';

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

/** An object in the library's memory, which must be freed explicitly. */
export interface Disposable {
  dispose(): void;
}

/** The library's compiler for one vocabulary. */
export interface LibraryCompiler extends Disposable {
  compileJSONSchema(
    schema: string, anyWhitespace: boolean, indent: undefined, separators: undefined, strict: boolean, maxWhitespace?: number,
  ): Promise<Disposable>; // prettier-ignore
  compileGrammar(ebnf: string): Promise<Disposable>;
  compileStructuralTag(tag: unknown): Promise<Disposable>;
}

/** The state of one answer in its grammar. */
export interface LibraryMatcher extends Disposable {
  acceptToken(token: number): boolean;
  getNextTokenBitmask(): Promise<Int32Array>;
}

/** What an answer is constrained to, checked and normalised. */
export type GrammarSource =
  | JsonSource
  | CallsSource
  | { readonly type: 'json_or_calls'; readonly json: JsonSource; readonly calls: CallsSource }
  | TextSource;
/** Answers that are one JSON value: any object, or one that satisfies a schema. */
export type JsonSource = { readonly type: 'json_object' } | { readonly type: 'json_schema'; readonly schema: NormalSchema };
/** Free text with calls, which begin with the trigger or, if they have no tags, as one of `bare` does. */
export interface TextSource {
  readonly type: 'text_and_calls';
  readonly trigger: string;
  readonly calls: CallsSource;
  readonly bare: readonly CallSource[];
}
/** Calls of one tool: the text before and after the arguments, and their schema. */
export interface CallSource {
  readonly begin: string;
  readonly schema: NormalSchema;
  readonly end: string;
}
/** Answers that consist of tool calls. */
export interface CallsSource {
  readonly type: 'tool_calls';
  readonly tools: readonly CallSource[];
  readonly single: boolean;
  /** Text before all calls, between two of them, and after all. */
  readonly begin: string;
  readonly separator: string;
  readonly end: string;
}

/** Most white space in a row. More helps no reader, and lets a small model ramble. */
const MAX_WHITESPACE = 2;

const ANY_OBJECT = '{"type":"object"}';

/** Compiles a grammar. After an error the library must not be used again, unless it is an EngineError. */
export async function compileGrammar(library: GrammarLibrary, compiler: LibraryCompiler, source: GrammarSource): Promise<Disposable> {
  if (source.type === 'json_object') return compiler.compileJSONSchema(ANY_OBJECT, true, undefined, undefined, false, MAX_WHITESPACE);
  if (source.type === 'json_schema') return compiler.compileGrammar(await jsonGrammar(library, source));
  if (source.type === 'tool_calls' || source.type === 'text_and_calls') {
    const format =
      source.type === 'tool_calls' ? callsFormat(await callTags(library, source.tools), source) : await textFormat(library, source);
    return compiler.compileStructuralTag({ type: 'structural_tag', format });
  }
  // The library accepts no bare grammar as the alternative of tags that may repeat, so it gets an empty tag.
  const json = { type: 'tag', begin: '', content: { type: 'grammar', grammar: await jsonGrammar(library, source.json) }, end: '' };
  const elements = [tagsFormat([json], true), callsFormat(await callTags(library, source.calls.tools), source.calls)];
  return compiler.compileStructuralTag({ type: 'structural_tag', format: { type: 'or', elements } });
}

async function jsonGrammar({ Testings: { _jsonSchemaToEBNF: toEbnf } }: GrammarLibrary, source: JsonSource): Promise<string> {
  if (source.type === 'json_object') return toEbnf(ANY_OBJECT, true, -1, undefined, false, MAX_WHITESPACE);
  const rules = rulesOf(source.schema);
  return rules(await toEbnf(source.schema.schema, true, -1, undefined, true, MAX_WHITESPACE));
}

interface CallTag {
  readonly type: 'tag';
  readonly begin: string;
  readonly content: object;
  readonly end: string;
}

async function callTags(
  { Testings: { _jsonSchemaToEBNF: toEbnf } }: GrammarLibrary,
  tools: readonly CallSource[],
): Promise<readonly CallTag[]> {
  const tags = tools.map(async ({ begin, schema, end }) => ({
    type: 'tag' as const,
    begin,
    // EBNF with fixed separators, because within a tag the library's own schemas allow white space without end.
    content: { type: 'grammar', grammar: rulesOf(schema)(await toEbnf(schema.schema, false, -1, [', ', ': '], true)) },
    end,
  }));
  return Promise.all(tags);
}

/** Format of one call or, unless `single`, of several. */
function callsFormat(tags: readonly object[], { begin, separator, end, single }: CallsSource): object {
  const content = tagsFormat(tags, single, separator);
  if (begin === '') return content;
  // The library (0.1.27) takes neither what has no end in a tag nor what follows it in a sequence.
  if (end === '') return { type: 'sequence', elements: [{ type: 'const_string', value: begin }, content] };
  return tagsFormat([{ type: 'tag', begin, content, end }], true);
}

async function textFormat(library: GrammarLibrary, { trigger, calls, bare }: TextSource): Promise<object> {
  const { begin, end, single } = calls;
  const each = await callTags(library, calls.tools);
  const isList = end !== '';
  const tags = isList
    ? [{ type: 'tag', begin, content: tagsFormat(each, single, calls.separator), end }]
    : each.map((tag) => ({ ...tag, begin: begin + tag.begin }));
  const triggers = [trigger, ...bare.map((call) => call.begin)];
  return {
    type: 'triggered_tags',
    triggers,
    tags: [...tags, ...(await bareTags(library, bare))],
    at_least_one: false,
    stop_after_first: single,
  };
}

/** Tags of calls that a model writes without tags. Their white space is up to the model: a stricter grammar makes it write other names. */
async function bareTags({ Testings: { _jsonSchemaToEBNF: toEbnf } }: GrammarLibrary, calls: readonly CallSource[]): Promise<CallTag[]> {
  // Counted repeats of white space would be most of the grammar.
  const blank = '[ \\t\\n]*';
  const grammar = (text: string): object => ({ type: 'grammar', grammar: text });
  const tags = calls.map(async ({ begin, schema, end }) => {
    const rules = rulesOf(schema);
    const args = rules(await toEbnf(schema.schema, true, -1, undefined, true));
    const elements = [grammar(`root ::= "," ${blank} "\\"arguments\\":" ${blank}\n`), grammar(args), grammar(`root ::= ${blank}\n`)];
    return { type: 'tag' as const, begin, content: { type: 'sequence', elements }, end };
  });
  return Promise.all(tags);
}

/** Format of one of the tags or, unless `single`, of several with the separator between them. */
const tagsFormat = (tags: readonly object[], single: boolean, separator = '\n'): object => ({
  type: 'tags_with_separator',
  tags,
  separator,
  at_least_one: true,
  stop_after_first: single,
});

/** The library's class of a character in a string of bounded length, which allows control characters, and the class of what JSON allows. */
const LOOSE_CHARACTER = '[^"\\\\\\r\\n]';
const CHARACTER = '[^\\0-\\x1f\\"\\\\\\r\\n]';

/** Returns a function that replaces the placeholders of numbers in EBNF by their rules. Call it before the library is used: it may throw EngineError. */
function rulesOf({ numbers }: NormalSchema): (ebnf: string) => string {
  const rules = numbers.map(([constant, range], i) => ({ constant, name: `bounded_number_${i}`, text: numberRules(`bounded_number_${i}`, range) })); // prettier-ignore
  return (ebnf) =>
    rules.reduce((text, { constant, name }) => text.replaceAll(`"\\"${constant}\\""`, name), ebnf.replaceAll(LOOSE_CHARACTER, CHARACTER)) +
    rules.map(({ text }) => text).join('');
}
