/**
 * Constrained decoding: which tokens may come next, as a bitmask that the sampler applies on the GPU. The grammar automaton is xgrammar (WASM), which runs in
 * worker threads. `Grammars` distributes grammars over these threads; a sequence carries a `GrammarMatcher`. engine/README.md says how, and why.
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

/** What an answer is constrained to. */
export type Constraint =
  | JsonConstraint
  | CallsConstraint
  /** JSON or tool calls; the answer's first characters decide which. */
  | { readonly type: 'json_or_calls'; readonly json: JsonConstraint; readonly calls: CallsConstraint }
  /** Free text, in which tool calls must be valid. */
  | { readonly type: 'text_and_calls'; readonly calls: CallsConstraint };

type JsonConstraint = { readonly type: 'json_object' } | { readonly type: 'json_schema'; readonly schema: unknown };

/** Tool calls and nothing else, in a form that output-parser.ts reads; `single` = exactly one call. `refuseArguments` has passed the tools' schemas. */
interface CallsConstraint {
  readonly type: 'tool_calls';
  readonly tools: readonly CallableTool[];
  readonly single: boolean;
  /** How the model writes calls; default: Hermes, which is JSON within `<tool_call>`. */
  readonly form?: CallForm;
}

/** A tool that the answer may call. */
export interface CallableTool {
  readonly name: string;
  /** JSON Schema of the arguments; absent = none. */
  readonly parameters?: unknown;
  /** In free text, also constrain calls of this tool that the model writes without tags. */
  readonly strict?: boolean;
}

/** Bounds of the threads that compute grammars. */
export interface GrammarLimits extends ThreadLimits {
  /** Most threads; further grammars share them. */
  readonly threads: number;
  /** Most characters of all tools' schemas together. */
  readonly toolCharacters: number;
  /** WASM memory, in bytes, above which an idle thread is ended, because WebAssembly memory never shrinks. */
  readonly keptBytes: number;
}

/** Measured memory of a thread: 16 MiB, and 113 MiB for the largest grammar, with a vocabulary of 4,096 tokens; 17 and 175 MiB with 49,152. */
export const GRAMMAR_LIMITS: GrammarLimits = {
  threads: 4,
  milliseconds: 30_000,
  maxBytes: 512 * 2 ** 20,
  keptBytes: 128 * 2 ** 20,
  kept: 16,
  toolCharacters: 262_144,
};

const NO_PARAMETERS = { type: 'object', properties: {}, additionalProperties: false };

/** Compiles constraints for one vocabulary, in threads that are started on demand. */
export class Grammars {
  readonly #startWorker: () => PlatformWorker;
  readonly #readVocabulary: () => Vocabulary;
  readonly #limits: GrammarLimits;
  readonly #threads = new Set<GrammarThread>();
  #vocabulary: Vocabulary | undefined;
  #nextMatcher = 0;
  #closed = false;

  /** `readVocabulary` is called once, for the first constraint. */
  constructor(startWorker: () => PlatformWorker, readVocabulary: () => Vocabulary, limits = GRAMMAR_LIMITS) {
    this.#startWorker = startWorker;
    this.#readVocabulary = readVocabulary;
    this.#limits = limits;
  }

  /**
   * Compiles a constraint into `count` independent matchers, one per sequence. Throws EngineError('invalid_json_schema') that names keyword and JSON pointer if the
   * schema cannot be enforced.
   */
  async start(constraint: Constraint, count: number): Promise<readonly GrammarMatcher[]> {
    // Checking a large schema takes a while, on the thread that runs the steps, so it is done once for all matchers.
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

  /** Opens a matcher in a thread; if that thread is lost to another grammar's failure, tries again in another. */
  async #open({ source, key, matcher }: OpenGrammar, tokens: readonly number[]): Promise<OpenMatcher> {
    for (;;) {
      const thread = this.#threadFor(key);
      thread.matchers.add(matcher);
      try {
        const mask = await thread.ask({ type: 'open', key, source, matcher, tokens });
        return { mask, advance: (token) => thread.ask({ type: 'advance', matcher, token }), close: () => this.#release(thread, matcher) };
      } catch (error) {
        this.#release(thread, matcher);
        if (!(error instanceof ThreadLost)) throw error;
      }
    }
  }

  /**
   * Picks the thread for a grammar: one that is compiling it, else one that has it compiled and is not compiling another, else an idle one, else a new one. Sharing a busy thread comes
   * last, because its matchers wait while it compiles.
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
    // A lost thread rejects, and has no matcher to close.
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

/** A matcher in a thread, with the token mask of its initial state. */
interface OpenMatcher {
  readonly mask: Int32Array;
  readonly advance: (token: number) => Promise<Int32Array>;
  readonly close: () => void;
}

/** Checks and normalises a constraint's schemas; throws EngineError('invalid_json_schema'). */
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
  const tools = constraint.tools.map(({ name, parameters = NO_PARAMETERS }) => {
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

/** Throws EngineError('invalid_json_schema') for the first keyword of a schema that cannot be enforced. */
export function refuseUnsupported(schema: unknown, param = 'responseFormat.schema'): void {
  refuse(findSchemaProblem(schema), param);
}

/** Throws EngineError('invalid_json_schema') if a tool's parameters cannot be enforced: for an unsupported keyword, or a schema that allows no object. */
export function refuseArguments(schema: unknown, param: string): void {
  refuse(findArgumentsProblem(schema), param);
}

/** Why a tool's parameters cannot be enforced; undefined if they can. */
export function findArgumentsProblem(schema: unknown): SchemaProblem | undefined {
  const none = { pointer: '/', keyword: 'type', message: 'the arguments of a tool are an object' };
  return findSchemaProblem(schema) ?? (objectsOf(schema) === undefined ? none : undefined);
}

/** Throws EngineError('invalid_json_schema') for the first keyword with an invalid value: the check of schemas that are shown to the model but not enforced. */
export function refuseMalformed(schema: unknown, param: string): void {
  refuse(findMalformed(schema), param);
}

function refuse(problem: SchemaProblem | undefined, param: string): void {
  if (!problem) return;
  throw new EngineError('invalid_json_schema', `schema at ${problem.pointer}: ${problem.message} ('${problem.keyword}')`, { param });
}

/** Says which token an answer may have next. */
export interface TokenMatcher {
  /** Token mask of the current state: bit `id & 31` of word `id >> 5` is 1 if the token is allowed. */
  bitmask(): Promise<Int32Array>;
  /** The token mask of the current state if it has been computed; else undefined. */
  readonly mask: Int32Array | undefined;
  /** Advances by a token; false, without effect, if the mask does not allow it or is not computed yet. */
  accept(token: number): boolean;
  /** Whether a stop token has been accepted. */
  readonly terminated: boolean;
  dispose(): void;
}

/** The grammar state of one sequence. It keeps the accepted tokens, so that it can be reopened when the thread that computes its masks is lost. */
export class GrammarMatcher implements TokenMatcher {
  readonly #stopTokenIds: ReadonlySet<number>;
  readonly #open: (tokens: readonly number[]) => Promise<OpenMatcher>;
  readonly #tokens: number[] = [];
  #opened: Promise<OpenMatcher>;
  #close: (() => void) | undefined;
  /** Token mask of the state after `#tokens`. */
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

  /** Rejects if the grammar fails in its thread. */
  bitmask(): Promise<Int32Array> {
    return this.#mask;
  }

  get mask(): Int32Array | undefined {
    return this.#known;
  }

  accept(token: number): boolean {
    if (((this.#known?.[token >> 5] ?? 0) >>> (token & 31) & 1) === 0) return false; // prettier-ignore
    this.#terminated = this.#stopTokenIds.has(token);
    this.#tokens.push(token);
    if (!this.#terminated) this.#advance(token);
    return true;
  }

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

  #advance(token: number): void {
    const { length } = this.#tokens;
    const reopen = async (error: unknown): Promise<Int32Array> => {
      if (!(error instanceof ThreadLost) || this.#disposed) throw error;
      this.#opened = this.#openAfter(this.#tokens.slice(0, length));
      return (await this.#opened).mask;
    };
    const send = ({ advance }: OpenMatcher): Promise<Int32Array> => {
      // Ended meanwhile, as by the token's own text: the thread knows the matcher no more, and would break at a call to it.
      if (this.#disposed) throw new ThreadLost('the matcher has ended');
      return advance(token);
    };
    this.#mask = this.#note(this.#opened.then(send).catch(reopen));
  }

  #note(mask: Promise<Int32Array>): Promise<Int32Array> {
    this.#known = undefined;
    mask.then((known) => this.#mask === mask && (this.#known = known)).catch(() => {});
    return mask;
  }
}
