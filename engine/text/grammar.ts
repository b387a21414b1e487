/**
 * Constrained decoding: which tokens may come next, as a bitmask the sampler applies on the GPU. The automaton is xgrammar (WASM); this
 * file is the little of it that we use, typed, and what one sequence carries.
 */
import { EngineError } from '../errors.ts';
import { findSchemaProblem } from './json-schema.ts';
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
      separators: [string, string],
      strict: boolean,
    ): Promise<string>;
  };
  readonly GrammarMatcher: { createGrammarMatcher(grammar: Disposable): Promise<LibraryMatcher> };
}

interface Disposable {
  dispose(): void;
}

interface LibraryCompiler extends Disposable {
  compileJSONSchema(
    schema: string, anyWhitespace: boolean, indent: undefined, separators: undefined, strict: boolean, maxWhitespace?: number,
  ): Promise<Disposable>; // prettier-ignore
  compileBuiltinJSONGrammar(): Promise<Disposable>;
  compileStructuralTag(tag: unknown): Promise<Disposable>;
}

interface LibraryMatcher extends Disposable {
  acceptToken(token: number): boolean;
  getNextTokenBitmask(): Promise<Int32Array>;
  isTerminated(): boolean;
  rollBack(count: number): void;
}

/** What an answer must look like. */
export type Constraint =
  | { readonly type: 'json_object' }
  | { readonly type: 'json_schema'; readonly schema: unknown }
  /** Tool calls in the form output-parser.ts reads, one a line; `single` = exactly one. */
  | { readonly type: 'tool_calls'; readonly tools: readonly CallableTool[]; readonly single: boolean };

export interface CallableTool {
  readonly name: string;
  /** JSON Schema of the arguments; absent = none. */
  readonly parameters?: unknown;
}

export interface Vocabulary {
  /** Token strings by id as tokenizer.json spells them. */
  readonly tokens: readonly string[];
  /** How it spells bytes. */
  readonly type: 'byte_level' | 'byte_fallback' | 'raw';
  readonly stopTokenIds: readonly number[];
}

/** More runs of white space than this help no reader and let a small model ramble. */
const MAX_WHITESPACE = 2;
/** Compiled grammars kept for the next request with the same schema. */
const KEPT = 64;

/** Compiles constraints for one vocabulary; keeps the most recent ones. */
export class Grammars {
  readonly #library: GrammarLibrary;
  readonly #compiler: LibraryCompiler;
  readonly #compiled = new Map<string, Promise<Disposable>>();

  private constructor(library: GrammarLibrary, compiler: LibraryCompiler) {
    this.#library = library;
    this.#compiler = compiler;
  }

  static async create(library: GrammarLibrary, { tokens, type, stopTokenIds }: Vocabulary): Promise<Grammars> {
    const info = await library.TokenizerInfo.createTokenizerInfo([...tokens], type, false, tokens.length, [...stopTokenIds]);
    return new Grammars(library, await library.GrammarCompiler.createGrammarCompiler(info, false));
  }

  /** A fresh matcher. Throws EngineError('invalid_request') naming keyword and JSON pointer when the schema cannot be enforced. */
  async start(constraint: Constraint): Promise<GrammarMatcher> {
    if (constraint.type === 'json_schema') refuseUnsupported(constraint.schema);
    const key = JSON.stringify(constraint);
    let compiled = this.#compiled.get(key);
    this.#compiled.delete(key);
    compiled ??= this.#compile(constraint);
    this.#compiled.set(key, compiled);
    // The oldest is only forgotten, not disposed: running sequences may still hold it.
    if (this.#compiled.size > KEPT) this.#compiled.delete(this.#compiled.keys().next().value!);
    return new GrammarMatcher(await this.#library.GrammarMatcher.createGrammarMatcher(await compiled));
  }

  #compile(constraint: Constraint): Promise<Disposable> {
    if (constraint.type === 'json_object') {
      return this.#compiler.compileJSONSchema('{"type":"object"}', true, undefined, undefined, false, MAX_WHITESPACE);
    }
    if (constraint.type === 'tool_calls') return this.#compileCalls(constraint.tools, constraint.single);
    return this.#compiler.compileJSONSchema(JSON.stringify(constraint.schema), true, undefined, undefined, true, MAX_WHITESPACE);
  }

  async #compileCalls(tools: readonly CallableTool[], single: boolean): Promise<Disposable> {
    const { _jsonSchemaToEBNF: toEbnf } = this.#library.Testings;
    const tags = tools.map(async ({ name, parameters = { type: 'object', properties: {}, additionalProperties: false } }) => ({
      type: 'tag',
      begin: `${OPEN_CALL}\n{"name": ${JSON.stringify(name)}, "arguments": `,
      // As EBNF with fixed separators: inside a tag the library's own schemas allow white space without end.
      content: { type: 'grammar', grammar: await toEbnf(JSON.stringify(parameters), false, -1, [', ', ': '], true) },
      end: `}\n${CLOSE_CALL}`,
    }));
    const format = {
      type: 'tags_with_separator',
      tags: await Promise.all(tags),
      separator: '\n',
      at_least_one: true,
      stop_after_first: single,
    };
    return this.#compiler.compileStructuralTag({ type: 'structural_tag', format });
  }
}

/** Throws the contract's error for the first keyword that cannot be enforced. */
export function refuseUnsupported(schema: unknown, param = 'response_format.json_schema.schema'): void {
  const problem = findSchemaProblem(schema);
  if (!problem) return;
  throw new EngineError('invalid_json_schema', `schema at ${problem.pointer}: ${problem.message} ('${problem.keyword}')`, { param });
}

/** The state of one constrained sequence. */
export class GrammarMatcher {
  readonly #matcher: LibraryMatcher;

  constructor(matcher: LibraryMatcher) {
    this.#matcher = matcher;
  }

  /** One bit a token id, 1 = allowed, 32 ids a word. The array is the caller's to keep. */
  async bitmask(): Promise<Int32Array> {
    return (await this.#matcher.getNextTokenBitmask()).slice();
  }

  /** Advances by a sampled token; false when the grammar does not allow it. */
  accept(token: number): boolean {
    return this.#matcher.acceptToken(token);
  }

  /** Takes back the last `count` tokens (speculation). */
  rollback(count: number): void {
    this.#matcher.rollBack(count);
  }

  /** True after the stop token. */
  get terminated(): boolean {
    return this.#matcher.isTerminated();
  }

  dispose(): void {
    this.#matcher.dispose();
  }
}
