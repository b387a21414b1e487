/**
 * Worker thread of the grammar library: compiles grammars and computes the masks of their matchers, one call at a time. An error in the library leaves its memory
 * corrupt, so the thread must be replaced after one (`broken`).
 */
import { EngineError } from '../errors.ts';
import type { WorkerPort } from '../platform/platform.ts';
import { compileGrammar } from './grammar-library.ts';
import type { Disposable, GrammarLibrary, GrammarSource, LibraryCompiler, LibraryMatcher } from './grammar-library.ts';
import { WasmGuard } from '../platform/wasm-guard.ts';

/** A tokenizer's vocabulary. */
export interface Vocabulary {
  /** Token strings by id, as tokenizer.json spells them. */
  readonly tokens: readonly string[];
  /** How the token strings represent bytes. */
  readonly type: 'byte_level' | 'byte_fallback' | 'raw';
  readonly stopTokenIds: readonly number[];
}

/** A call to the thread; calls are answered in order. */
export type GrammarCall =
  | { readonly type: 'load'; readonly vocabulary: Vocabulary; readonly maxBytes: number; readonly kept: number }
  /** Opens a matcher that has accepted `tokens`, and answers with its mask. Compiles the grammar, unless it is cached under its key. */
  | {
      readonly type: 'open';
      readonly key: string;
      readonly source: GrammarSource;
      readonly matcher: number;
      readonly tokens: readonly number[];
    }
  /** Accepts `token`; answers with the mask after it. */
  | { readonly type: 'advance'; readonly matcher: number; readonly token: number }
  | { readonly type: 'close'; readonly matcher: number };

/** The thread's answer to a call. */
export interface GrammarReply {
  /** Answer to `open` and `advance`: one bit per token id, 1 = allowed, 32 ids per word. */
  readonly mask?: Int32Array;
  /** Size of the library's memory. */
  readonly bytes: number;
  readonly error?: { readonly message: string; readonly broken: boolean };
}

/** Serves the port until the thread is ended. `platform` loads the library (grammar-library.ts types it). */
export function main(platform: { grammarLibrary(): Promise<unknown> }, port: Pick<WorkerPort, 'post' | 'onMessage'>): void {
  const host = new GrammarHost(() => platform.grammarLibrary() as Promise<GrammarLibrary>);
  let queue = Promise.resolve();
  port.onMessage((message) => {
    queue = queue.then(async () => port.post(await host.answer(message as GrammarCall)));
  });
}

class GrammarHost {
  readonly #load: () => Promise<GrammarLibrary>;
  readonly #guard = new WasmGuard();
  readonly #grammars = new Map<string, Disposable>();
  readonly #matchers = new Map<number, LibraryMatcher>();
  #library: GrammarLibrary | undefined;
  #compiler: LibraryCompiler | undefined;
  #kept = 0;

  constructor(load: () => Promise<GrammarLibrary>) {
    this.#load = load;
  }

  async answer(call: GrammarCall): Promise<GrammarReply> {
    try {
      const mask = await this.#perform(call);
      this.#guard.check();
      return { bytes: this.#guard.bytes, ...(mask && { mask }) };
    } catch (error) {
      const message = error instanceof EngineError ? error.message : this.#guard.explain(error);
      return {
        bytes: this.#guard.bytes,
        error: { message, broken: !(error instanceof EngineError && error.code === 'invalid_json_schema') },
      };
    }
  }

  async #perform(call: GrammarCall): Promise<Int32Array | undefined> {
    switch (call.type) {
      case 'load':
        await this.#start(call);
        return undefined;
      case 'open':
        return this.#open(await this.#grammar(call.key, call.source), call.matcher, call.tokens);
      case 'advance': {
        const matcher = this.#matchers.get(call.matcher)!;
        matcher.acceptToken(call.token);
        return matcher.getNextTokenBitmask();
      }
      case 'close':
        this.#matchers.get(call.matcher)?.dispose();
        return void this.#matchers.delete(call.matcher);
    }
  }

  async #start({ vocabulary, maxBytes, kept }: Extract<GrammarCall, { type: 'load' }>): Promise<void> {
    this.#kept = kept;
    this.#library = await this.#guard.watch(maxBytes, async () => {
      const library = await this.#load();
      const { tokens, type, stopTokenIds } = vocabulary;
      // The first call instantiates the library's module.
      const info = await library.TokenizerInfo.createTokenizerInfo([...tokens], type, false, tokens.length, [...stopTokenIds]);
      this.#compiler = await library.GrammarCompiler.createGrammarCompiler(info, false);
      return library;
    });
  }

  /** Returns a compiled grammar, and caches the most recently used ones. Any may be evicted, since a matcher holds its own. */
  async #grammar(key: string, source: GrammarSource): Promise<Disposable> {
    const grammar = this.#grammars.get(key) ?? (await compileGrammar(this.#library!, this.#compiler!, source));
    this.#grammars.delete(key);
    this.#grammars.set(key, grammar);
    const oldest = this.#grammars.keys().next().value!;
    if (this.#grammars.size > this.#kept) {
      this.#grammars.get(oldest)!.dispose();
      this.#grammars.delete(oldest);
    }
    return grammar;
  }

  async #open(grammar: Disposable, id: number, tokens: readonly number[]): Promise<Int32Array> {
    const matcher = await this.#library!.GrammarMatcher.createGrammarMatcher(grammar);
    this.#matchers.set(id, matcher);
    for (const token of tokens) matcher.acceptToken(token);
    return matcher.getNextTokenBitmask();
  }
}
