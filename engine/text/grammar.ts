/**
 * Constrained decoding: which tokens may come next, as a bitmask the sampler applies on the GPU. The automaton is xgrammar (WASM), which runs in
 * threads of its own; this file deals grammars out to them and is what one sequence carries. How, and why: engine/README.md.
 */
import { EngineError, engineClosing } from '../errors.ts';
import type { PlatformWorker } from '../platform/platform.ts';
import { HERMES } from './call-forms.ts';
import type { CallForm } from './call-forms.ts';
import type { CallsSource, GrammarSource, JsonSource, TextSource } from './grammar-library.ts';
import { CallFailed, GrammarThread, ThreadLost } from './grammar-thread.ts';
import type { ThreadLimits } from './grammar-thread.ts';
import type { Vocabulary } from './grammar-worker.ts';
import { findMalformed, findSchemaProblem } from './json-schema.ts';
import type { SchemaProblem } from './json-schema.ts';
import { normalizeSchema, objectsOf } from './schema-normal.ts';

/** What an answer must look like. */
export type Constraint =
  | JsonConstraint
  | CallsConstraint
  /** One or the other, as its first characters say. */
  | { readonly type: 'json_or_calls'; readonly json: JsonConstraint; readonly calls: CallsConstraint }
  /** Any text, and calls that are what they must be. */
  | { readonly type: 'text_and_calls'; readonly calls: CallsConstraint };

type JsonConstraint = { readonly type: 'json_object' } | { readonly type: 'json_schema'; readonly schema: unknown };

/** Tool calls in a form that output-parser.ts reads; `single` = exactly one. */
interface CallsConstraint {
  readonly type: 'tool_calls';
  readonly tools: readonly CallableTool[];
  readonly single: boolean;
  /** Without it as `<tool_call>` and JSON. */
  readonly form?: CallForm;
}

export interface CallableTool {
  readonly name: string;
  /** JSON Schema of the arguments; absent = none. */
  readonly parameters?: unknown;
  /** In other text, calls without tags are held to it too. */
  readonly strict?: boolean;
}

export interface GrammarLimits extends ThreadLimits {
  /** Threads at most. Grammars in use beyond that share them. */
  readonly threads: number;
  /** Characters of all tools' schemas together. */
  readonly toolCharacters: number;
  /** A thread that took more is ended when nothing runs in it: WebAssembly gives nothing back. */
  readonly keptBytes: number;
}

/** Measured with 4,096 tokens: 16 MiB a thread, and 113 MiB for the largest grammar; with 49,152 tokens 17 and 175 MiB. */
export const GRAMMAR_LIMITS: GrammarLimits = {
  threads: 4,
  milliseconds: 30_000,
  maxBytes: 512 * 2 ** 20,
  keptBytes: 128 * 2 ** 20,
  kept: 16,
  toolCharacters: 262_144,
};

const NO_PARAMETERS = { type: 'object', properties: {}, additionalProperties: false };

/** Compiles constraints for one vocabulary, in threads that are started when they are needed. */
export class Grammars {
  readonly #startWorker: () => PlatformWorker;
  readonly #readVocabulary: () => Vocabulary;
  readonly #limits: GrammarLimits;
  readonly #threads = new Set<GrammarThread>();
  #vocabulary: Vocabulary | undefined;
  #nextMatcher = 0;
  #closed = false;

  /** The vocabulary is read at the first request. */
  constructor(startWorker: () => PlatformWorker, readVocabulary: () => Vocabulary, limits = GRAMMAR_LIMITS) {
    this.#startWorker = startWorker;
    this.#readVocabulary = readVocabulary;
    this.#limits = limits;
  }

  /** A fresh matcher. Throws EngineError('invalid_json_schema') naming keyword and JSON pointer when the schema cannot be enforced. */
  async start(constraint: Constraint): Promise<GrammarMatcher> {
    const [matcher] = await this.startSeveral(constraint, 1);
    return matcher!;
  }

  /** Fresh matchers of one grammar. */
  async startSeveral(constraint: Constraint, count: number): Promise<readonly GrammarMatcher[]> {
    // Checking what is large takes its time, on the thread that steps: once for all matchers.
    const source = sourceOf(constraint, this.#limits);
    const key = JSON.stringify(source);
    const matchers: GrammarMatcher[] = [];
    const { stopTokenIds } = this.#vocabularyOnce();
    try {
      while (matchers.length < count) {
        const grammar: OpenGrammar = { source, key, matcher: this.#nextMatcher++ };
        const matcher = new GrammarMatcher(stopTokenIds, (tokens) => this.#open(grammar, tokens));
        matchers.push(matcher);
        await matcher.bitmask();
      }
      return matchers;
    } catch (error) {
      for (const matcher of matchers) matcher.dispose();
      if (!(error instanceof CallFailed) || constraint.type === 'json_object') throw error;
      const isCalls = constraint.type === 'tool_calls' || constraint.type === 'text_and_calls';
      const param = isCalls ? 'tools' : 'responseFormat.schema';
      throw new EngineError('invalid_json_schema', `the schema cannot be enforced: ${error.message}`, { param, cause: error });
    }
  }

  /** Ends the threads. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#threads].map((thread) => thread.end()));
  }

  /** Opens a matcher in a thread, and again in another one as long as threads are lost by what others do. */
  async #open({ source, key, matcher }: OpenGrammar, tokens: readonly number[]): Promise<OpenMatcher> {
    for (;;) {
      const thread = this.#threadFor(key);
      thread.matchers.add(matcher);
      try {
        const mask = await thread.ask({ type: 'open', key, source, matcher, tokens });
        return { mask, advance: (call) => thread.ask({ type: 'advance', matcher, ...call }), close: () => this.#release(thread, matcher) };
      } catch (error) {
        this.#release(thread, matcher);
        if (!(error instanceof ThreadLost)) throw error;
      }
    }
  }

  /**
   * Where a grammar is compiled or was. A thread in which others' matchers run is the last choice, because these wait while it compiles, and so is
   * one that compiles something else.
   */
  #threadFor(key: string): GrammarThread {
    if (this.#closed) throw engineClosing();
    const threads = [...this.#threads];
    const least = (some: readonly GrammarThread[]): GrammarThread | undefined =>
      some.reduce<GrammarThread | undefined>((best, thread) => (best && best.load <= thread.load ? best : thread), undefined);
    return (
      threads.find((thread) => thread.isOpening(key)) ??
      threads.find((thread) => thread.hasCompiled(key) && !thread.isCompiling) ??
      threads.find((thread) => thread.isIdle) ??
      (threads.length < this.#limits.threads ? this.#startThread() : least(threads)!)
    );
  }

  #startThread(): GrammarThread {
    const thread = new GrammarThread(this.#startWorker(), this.#vocabularyOnce(), this.#limits, () => this.#threads.delete(thread));
    this.#threads.add(thread);
    return thread;
  }

  #vocabularyOnce(): Vocabulary {
    return (this.#vocabulary ??= this.#readVocabulary());
  }

  #release(thread: GrammarThread, matcher: number): void {
    if (!thread.matchers.delete(matcher)) return;
    // A thread that was lost has forgotten it already.
    thread.ask({ type: 'close', matcher }).catch(() => {});
    if (!thread.isIdle || thread.bytes <= this.#limits.keptBytes) return;
    this.#threads.delete(thread);
    void thread.end();
  }
}

interface OpenGrammar {
  readonly source: GrammarSource;
  readonly key: string;
  readonly matcher: number;
}

/** A matcher in a thread, with the mask of its state. */
interface OpenMatcher {
  readonly mask: Int32Array;
  readonly advance: (call: { readonly rollback: number; readonly token?: number }) => Promise<Int32Array>;
  readonly close: () => void;
}

/** Checks and normalises the schemas of a constraint. */
function sourceOf(constraint: Constraint, limits: GrammarLimits): GrammarSource {
  if (constraint.type === 'json_or_calls')
    return { type: 'json_or_calls', json: jsonSource(constraint.json), calls: callsSource(constraint.calls, limits) };
  if (constraint.type === 'text_and_calls') return textSource(constraint.calls, limits);
  return constraint.type === 'tool_calls' ? callsSource(constraint, limits) : jsonSource(constraint);
}

function textSource(constraint: CallsConstraint, limits: GrammarLimits): TextSource {
  const { tags, untagged } = constraint.form ?? HERMES;
  const calls = callsSource(constraint, limits);
  const bare = constraint.tools.flatMap(({ name, strict }, i) => {
    const isBare = strict === true && untagged;
    return isBare ? [{ begin: `"name": ${JSON.stringify(name)}`, schema: calls.tools[i]!.schema, end: '}' }] : [];
  });
  return { type: 'text_and_calls', trigger: tags[0].open, calls, bare };
}

function jsonSource(constraint: JsonConstraint): JsonSource {
  if (constraint.type === 'json_object') return constraint;
  refuseUnsupported(constraint.schema);
  return { type: 'json_schema', schema: normalizeSchema(constraint.schema) };
}

function callsSource(constraint: CallsConstraint, { toolCharacters }: GrammarLimits): CallsSource {
  const { call, begin, separator, end } = (constraint.form ?? HERMES).writing;
  const tools = constraint.tools.map(({ name, parameters = NO_PARAMETERS }, i) => {
    refuseArguments(parameters, `tools[${i}].parameters`);
    const [before, behind] = call(name);
    return { begin: before, schema: normalizeSchema(objectsOf(parameters)), end: behind };
  });
  const characters = tools.reduce((sum, { schema }) => sum + schema.schema.length, 0);
  if (characters > toolCharacters) {
    const message = `the tools' schemas have ${characters} characters in all; at most ${toolCharacters} can be enforced`;
    throw new EngineError('invalid_json_schema', message, { param: 'tools' });
  }
  return { type: 'tool_calls', tools, single: constraint.single, begin, separator, end };
}

/** Throws the contract's error for the first keyword that cannot be enforced. */
export function refuseUnsupported(schema: unknown, param = 'responseFormat.schema'): void {
  refuse(findSchemaProblem(schema), param);
}

/** The same for the schema of a tool's parameters, which has to allow an object. */
export function refuseArguments(schema: unknown, param: string): void {
  refuse(findArgumentsProblem(schema), param);
}

/** Why calls cannot be held to a schema of parameters, if they cannot. */
export function findArgumentsProblem(schema: unknown): SchemaProblem | undefined {
  const none = { pointer: '/', keyword: 'type', message: 'the arguments of a tool are an object' };
  return findSchemaProblem(schema) ?? (objectsOf(schema) === undefined ? none : undefined);
}

/** Throws the contract's error for the first keyword that has no such value: of a schema that is shown to the model and not enforced. */
export function refuseMalformed(schema: unknown, param: string): void {
  refuse(findMalformed(schema), param);
}

function refuse(problem: SchemaProblem | undefined, param: string): void {
  if (!problem) return;
  throw new EngineError('invalid_json_schema', `schema at ${problem.pointer}: ${problem.message} ('${problem.keyword}')`, { param });
}

/** The state of one constrained sequence: what it has written is known here, so that it outlives the thread that computes its masks. */
export class GrammarMatcher {
  readonly #stopTokenIds: ReadonlySet<number>;
  readonly #open: (tokens: readonly number[]) => Promise<OpenMatcher>;
  readonly #tokens: number[] = [];
  #opened: Promise<OpenMatcher>;
  #close: (() => void) | undefined;
  /** Of the state after `#tokens`. */
  #mask: Promise<Int32Array>;
  #known: Int32Array | undefined;
  #terminated = false;
  #disposed = false;

  /** `open` starts a matcher that has accepted `tokens`. */
  constructor(stopTokenIds: readonly number[], open: (tokens: readonly number[]) => Promise<OpenMatcher>) {
    this.#stopTokenIds = new Set(stopTokenIds);
    this.#open = open;
    this.#opened = this.#openAfter([]);
    this.#mask = this.#note(this.#opened.then(({ mask }) => mask));
  }

  /** One bit a token id, 1 = allowed, 32 ids a word. Rejects where the thread of a grammar fails at it. */
  bitmask(): Promise<Int32Array> {
    return this.#mask;
  }

  /** The same, once it is known. */
  get mask(): Int32Array | undefined {
    return this.#known;
  }

  /** Advances by a token sampled under the last mask; false when the grammar does not allow it. */
  accept(token: number): boolean {
    if (((this.#known?.[token >> 5] ?? 0) >>> (token & 31) & 1) === 0) return false; // prettier-ignore
    this.#terminated = this.#stopTokenIds.has(token);
    this.#tokens.push(token);
    if (!this.#terminated) this.#advance({ rollback: 0, token });
    return true;
  }

  /** Takes back the last `count` tokens (speculation), none of them a stop token. */
  rollback(count: number): void {
    this.#tokens.length -= count;
    this.#advance({ rollback: count });
  }

  /** True after the stop token. */
  get terminated(): boolean {
    return this.#terminated;
  }

  dispose(): void {
    this.#disposed = true;
    this.#close?.();
  }

  async #openAfter(tokens: readonly number[]): Promise<OpenMatcher> {
    this.#close = undefined;
    const opened = await this.#open(tokens);
    this.#close = opened.close;
    if (this.#disposed) opened.close();
    return opened;
  }

  #advance(call: { readonly rollback: number; readonly token?: number }): void {
    const tokens = [...this.#tokens];
    const reopen = async (error: unknown): Promise<Int32Array> => {
      if (!(error instanceof ThreadLost) || this.#disposed) throw error;
      this.#opened = this.#openAfter(tokens);
      return (await this.#opened).mask;
    };
    const send = ({ advance }: OpenMatcher): Promise<Int32Array> => {
      // Ended meanwhile, as by the token's own text: the thread knows the matcher no more, and would break at a call to it.
      if (this.#disposed) throw new ThreadLost('the matcher has ended');
      return advance(call);
    };
    this.#mask = this.#note(this.#opened.then(send).catch(reopen));
  }

  #note(mask: Promise<Int32Array>): Promise<Int32Array> {
    this.#known = undefined;
    mask.then((known) => this.#mask === mask && (this.#known = known)).catch(() => {});
    return mask;
  }
}
