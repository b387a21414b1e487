/** Chat: template -> tokens -> scheduler -> steps -> text. The next step is submitted before the tokens of the one in flight are read. */
import type { ChatEvent, ChatRequest, ChatStatus, FinishReason, ModelInfo, ModelMemory, TokenizeRequest, TokenizerInfo } from '../api.ts';
import type { EngineConfig, ModelSource } from '../config.ts';
import { EngineError, assert, contextExceeded, engineClosing, requestAborted, stepFailed } from '../errors.ts';
import type { DeviceStats } from '../gpu/caps.ts';
import type { Device } from '../gpu/device.ts';
import type { Platform } from '../platform/platform.ts';
import type { TaskOperations } from '../protocol.ts';
import type { TokenLogprobs } from '../runner/logit-processors.ts';
import type { StepResult } from '../runner/model-runner.ts';
import type { Batch } from '../scheduler/batch.ts';
import { Sequence } from '../scheduler/sequence.ts';
import { ForcedTokens } from '../text/forced-tokens.ts';
import type { Constraint, TokenMatcher } from '../text/grammar.ts';
import { AsyncQueue } from '../util/async-queue.ts';
import { ChatChoice } from './chat-choice.ts';
import { prepareChat } from './chat-load.ts';
import type { ChatParts, ChatRunner } from './chat-load.ts';
import { placeOf } from './chat-place.ts';
import { loadAlone } from './prepared.ts';
import type { Prepared } from './prepared.ts';
import { checkTokenized, checkTokens, constraintOf, encodePrompt, endsOf, parserOptions, resolveSampling } from './chat-request.ts';

interface SubmittedStep {
  readonly batch: Batch;
  readonly result: StepResult;
  /** Time of submission, in milliseconds of performance.now(). */
  readonly at: number;
}

/** A request that is being answered. */
interface Job {
  readonly request: ChatRequest;
  readonly events: AsyncQueue<ChatEvent>;
  readonly choices: ReadonlyMap<Sequence, ChatChoice>;
  /** Tokens that end an answer. */
  readonly ends: ReadonlySet<number>;
  started: boolean;
  unfinished: number;
  /** Back-pressure: too many events are unread, so its sequences sit out the steps. */
  paused: boolean;
}

/** Unread events per choice beyond which a job is paused; it resumes when half of them have been read. */
const READ_AHEAD = 64;

/** Longest time that a step waits for token masks. Sequences whose masks come later sit that step out. */
const MASK_WAIT_MS = 1;

export class ChatEngine implements TaskOperations<'chat'> {
  readonly info: ModelInfo;
  readonly #parts: ChatParts;
  readonly #jobs = new Map<Sequence, Job>();
  readonly #counters = { promptTokens: 0, generatedTokens: 0, cachedTokens: 0 };
  /** Token masks that the grammar worker is computing; these promises never reject. */
  readonly #masks = new Map<Sequence, Promise<void>>();
  #nextId = 0;
  #closed: EngineError | undefined;
  /** When the last step completed, in milliseconds of performance.now(). */
  #lastStep = 0;
  #running: Promise<void> | undefined;
  #resolveLost: (reason: string) => void = () => {};
  /** Resolves with the reason when the engine can answer no more: a step failed, or a split model lost one of its devices. */
  readonly lost = new Promise<string>((resolve) => (this.#resolveLost = resolve));

  constructor(info: ModelInfo, parts: ChatParts) {
    this.info = info;
    this.#parts = parts;
    void parts.runner.lost?.then((reason) => this.#closed ?? this.#lose(new EngineError('device_lost', reason)));
  }

  /** Counters of the ranks' devices; empty unless the model is split. */
  get deviceStats(): readonly DeviceStats[] {
    return this.#parts.runner.stats ?? [];
  }

  /** What the ranks' self-tests and autotuning found; undefined unless the model is split. */
  get rankKernels(): ChatRunner['kernels'] {
    return this.#parts.runner.kernels;
  }

  /** Reads a model folder's configuration and plans its memory; `load` then allocates its KV pages, compiles its kernels and warms them up. */
  static async prepare(device: Device, platform: Platform, source: ModelSource, config: EngineConfig): Promise<Prepared<ChatEngine>> {
    const { load, ...prepared } = await prepareChat(device, platform, source, config);
    const make = async (memory: ModelMemory | undefined): Promise<ChatEngine> => {
      const { info, parts } = await load(memory);
      return new ChatEngine(info, parts);
    };
    return { ...prepared, load: make };
  }

  /** Prepares and loads a model that shares the device with no other. */
  static async load(device: Device, platform: Platform, source: ModelSource, config: EngineConfig): Promise<ChatEngine> {
    return loadAlone(device, platform, config, await ChatEngine.prepare(device, platform, source, config));
  }

  /** Counters and gauges of the scheduler, the page pool and speculative decoding, for EngineStatus. */
  status(): ChatStatus {
    const { scheduler, pool } = this.#parts;
    const { numRunning: running, numWaiting: waiting, numWaitingTokens: waitingTokens, numPagesHeld: kvPagesUsed, draftCounts } = scheduler;
    const { numWindowPages: windowPagesTotal, numWindowPagesHeld: windowPagesUsed } = scheduler;
    const { drafted: draftedTokens, accepted: acceptedTokens } = draftCounts;
    const pages = { kvPagesTotal: pool.size, kvPagesUsed, windowPagesTotal, windowPagesUsed };
    return { running, waiting, waitingTokens, ...pages, draftedTokens, acceptedTokens, ...this.#counters };
  }

  /**
   * Answers a request with a stream of events. Throws EngineError before the first event if the request cannot be served. Leaving the iteration early
   * aborts the request.
   */
  async *chat(request: ChatRequest, signal: AbortSignal): AsyncGenerator<ChatEvent> {
    const events = new AsyncQueue<ChatEvent>();
    const aborted = (): void => events.fail(requestAborted());
    if (signal.aborted) throw requestAborted();
    const job = await this.#enqueue(request, events);
    signal.addEventListener('abort', aborted, { once: true });
    if (signal.aborted) aborted();
    try {
      this.#wake();
      for await (const event of events) {
        yield event;
        if (job.paused && events.length <= (READ_AHEAD / 2) * job.choices.size) this.#setPaused(job, false);
      }
    } finally {
      signal.removeEventListener('abort', aborted);
      for (const sequence of job.choices.keys()) this.#drop(sequence);
      // The loop may have stopped while this job was paused or awaited a mask; its pages may let waiting sequences start.
      this.#wake();
    }
  }

  /** Token ids of a raw prompt, or of messages rendered with the chat template. */
  async tokenize({ prompt, messages = [], addSpecialTokens = true }: TokenizeRequest): Promise<readonly number[]> {
    if (prompt === undefined) return (await encodePrompt(this.#parts, { messages, sampling: {} }, checkTokenized)).tokens;
    checkTokenized(prompt, 'prompt');
    return this.#parts.texts.encode(prompt, { addSpecialTokens });
  }

  /** Decodes token ids, special tokens included. Throws EngineError for an id outside the vocabulary. */
  detokenize(tokens: readonly number[]): string {
    checkTokens(tokens, this.#parts.vocabulary, 'tokens');
    return this.#parts.tokenizer.decode(tokens, { skipSpecialTokens: false });
  }

  /** The special tokens and the template, for programs that render prompts themselves. */
  tokenizerInfo(): TokenizerInfo {
    const { tokenizer, template } = this.#parts;
    const special = (name: 'bos_token' | 'eos_token'): string | null => tokenizer.special(name) ?? null;
    return { bosToken: special('bos_token'), eosToken: special('eos_token'), chatTemplate: template.source ?? null };
  }

  /** Drops the cached prefixes that no running sequence uses. */
  flushCache(): void {
    this.#parts.scheduler.flushCache();
  }

  /** Ends every request with an error, waits for the step in flight, and closes the workers and the runner. */
  async close(): Promise<void> {
    this.#fail(engineClosing());
    await this.#running;
    await this.#parts.grammars.close();
    await this.#parts.texts.close();
    await this.#parts.runner.close?.();
  }

  /** Validates, tokenises and queues a request. */
  async #enqueue(request: ChatRequest, events: AsyncQueue<ChatEvent>): Promise<Job> {
    if (this.#closed) throw this.#closed;
    const { tokenizer, scheduler } = this.#parts;
    const constraint = constraintOf(request, this.#parts.template);
    const { tokens: promptTokens, text: prompt } = await encodePrompt(this.#parts, request, this.#checkLength, constraint);
    if (this.#closed) throw this.#closed;
    const maxTokens = this.#maxTokens(promptTokens.length, request);
    const { forcedTokens: forced, skipSpecialTokens = true } = request;
    if (forced) checkTokens(forced, this.#parts.vocabulary, 'forcedTokens');
    const ends = endsOf(request, this.#parts);
    const sampling = resolveSampling(request, { ...this.#parts, eos: ends }, forced !== undefined || constraint !== undefined);
    // A device without memory for that ends this request alone, and no step.
    if (sampling.logits) await this.#parts.runner.reserveProcessing?.();
    if (this.#closed) throw this.#closed;
    const choices = new Map<Sequence, ChatChoice>();
    const parser = parserOptions(request, prompt, this.#parts.template, constraint);
    const before = request.prompt !== undefined || request.continueFinalMessage === true ? promptTokens : undefined;
    const matchers = await this.#startMatchers(forced ?? constraint, request.n ?? 1);
    for (const [index, matcher] of matchers.entries()) {
      const place = placeOf(request, this.#parts);
      const sequence = new Sequence({ id: this.#nextId++, promptTokens, maxTokens, sampling, choice: index, ...place });
      sequence.mask = matcher?.mask;
      // Stop sequences end text, and a constrained answer of tool calls alone has none.
      const stop = constraint?.type === 'tool_calls' ? [] : (request.stop ?? []);
      const reportsEnd = request.prompt !== undefined;
      choices.set(sequence, new ChatChoice(tokenizer, { index, stop, skipSpecialTokens, parser, matcher, before, reportsEnd }));
    }
    const job: Job = { request, events, choices, ends, started: false, unfinished: choices.size, paused: false };
    try {
      scheduler.add([...choices.keys()]);
    } catch (error) {
      // The queue is full: no sequence will dispose of its matcher.
      for (const matcher of matchers) matcher?.dispose();
      throw error;
    }
    for (const sequence of choices.keys()) this.#jobs.set(sequence, job);
    return job;
  }

  /** Makes a matcher per choice of forced tokens, or of a constraint, which is compiled. The engine may be closed meanwhile; then this throws. */
  async #startMatchers(
    constraint: readonly number[] | Constraint | undefined,
    count: number,
  ): Promise<readonly (TokenMatcher | undefined)[]> {
    const each = <Matcher>(make: () => Matcher): Matcher[] => Array.from({ length: count }, make);
    if (!constraint) return each(() => undefined);
    if (!('type' in constraint)) return each(() => new ForcedTokens(constraint, this.#parts.vocabulary));
    const matchers = await this.#parts.grammars.start(constraint, count);
    if (!this.#closed) return matchers;
    for (const matcher of matchers) matcher.dispose();
    throw this.#closed;
  }

  /** Refuses a text that cannot fit the context, before time is spent on tokenising it. */
  #checkLength = (text: string, param: string): void => this.#parts.texts.refuseLonger(text, this.#parts.context, param);

  /** Most tokens that the answer may have. Throws EngineError('context_length_exceeded') if prompt and answer do not fit the context. */
  #maxTokens(given: number, { maxTokens, prompt: raw, forcedTokens: forced }: ChatRequest): number {
    const { context, truncates } = this.#parts;
    const [prompt, asked] = forced ? [given + forced.length, undefined] : [given, maxTokens];
    const param = raw === undefined ? 'messages' : 'prompt';
    if (prompt === 0) throw new EngineError('invalid_request', 'the prompt is empty', { param });
    // Nothing follows forced tokens.
    if (prompt + (forced ? 0 : truncates ? 1 : Math.max(1, asked ?? 1)) > context)
      throw contextExceeded(`${prompt} tokens`, { promptTokens: prompt, contextLength: context, param }, asked);
    return forced?.length ?? Math.min(asked ?? Infinity, context - prompt);
  }

  /** Starts the step loop unless it is running. */
  #wake(): void {
    this.#running ??= this.#loop().catch((error: unknown) => this.#lose(stepFailed('chat', error)));
  }

  /** Runs steps until no sequence is left. With overlap, the tokens of a step are read after the next step is submitted. */
  async #loop(): Promise<void> {
    const { scheduler, runner, overlap } = this.#parts;
    let submitted: SubmittedStep | undefined;
    try {
      // Requests that arrive in the same tick share the first step.
      await Promise.resolve();
      while (submitted || scheduler.numRunning + scheduler.numWaiting > 0) {
        await this.#awaitMasks();
        // The last request may have been aborted meanwhile.
        if (!submitted && scheduler.numRunning + scheduler.numWaiting === 0) break;
        const batch = scheduler.next();
        if (!batch && !submitted) {
          const paused = [...this.#jobs.values()].some((job) => job.paused);
          // The loop is woken when the client has read on, or when a mask is ready.
          assert(
            paused || this.#masks.size > 0,
            `nothing to do for ${scheduler.numRunning} running and ${scheduler.numWaiting} waiting sequences`,
          );
          break;
        }
        const current = batch && { batch, result: runner.run(batch), at: performance.now() };
        if (batch) this.#announce(batch);
        if (submitted) await this.#complete(submitted);
        submitted = current;
        if (submitted && !overlap) {
          await this.#complete(submitted);
          submitted = undefined;
        }
      }
    } finally {
      this.#running = undefined;
    }
  }

  /** Reads a step's tokens back and hands them to the scheduler, which passes each to `#take`. */
  async #complete({ batch, result, at }: SubmittedStep): Promise<void> {
    const tokens = await result.tokens();
    const now = performance.now();
    // A step that was submitted behind another one began when that one completed.
    this.#parts.scheduler.took(batch, now - Math.max(at, this.#lastStep));
    this.#lastStep = now;
    const logprobs = await result.logprobs?.();
    const headDrafts = await result.headDrafts?.();
    this.#parts.scheduler.complete(batch, tokens, (sequence, token, row) => this.#take(sequence, token, logprobs?.[row]), headDrafts);
  }

  /** Sends the `start` event of each request whose first step this is: a prefill, or a decode if all but its last prompt token was cached. */
  #announce({ decodes, prefills }: Batch): void {
    for (const { sequence } of [...decodes, ...prefills]) {
      const job = this.#jobs.get(sequence);
      if (!job || job.started) continue;
      job.started = true;
      const { numPrompt: promptTokens, cached: cachedTokens } = sequence;
      this.#counters.promptTokens += promptTokens;
      this.#counters.cachedTokens += cachedTokens;
      job.events.push({ type: 'start', promptTokens, cachedTokens });
    }
  }

  /** Handles one new token of a sequence: decodes it, sends what can be sent, and checks the stop conditions. */
  #take(sequence: Sequence, token: number, logprobs: TokenLogprobs | undefined): void {
    const job = this.#jobs.get(sequence);
    const choice = job?.choices.get(sequence);
    if (!job || !choice) return;
    const { request, events, ends } = job;
    this.#counters.generatedTokens++;
    const stopped = request.stopTokenIds?.includes(token) ?? false;
    const allowed = choice.matcher?.accept(token) ?? true;
    const mayEnd = !request.ignoreEos && !request.forcedTokens;
    const ended = stopped || !allowed || choice.matcher?.terminated === true || (mayEnd && ends.has(token));
    const last = ended || sequence.tokens.length - sequence.numPrompt >= sequence.maxTokens;
    let taken: ReturnType<ChatChoice['take']>;
    try {
      taken = choice.take(token, { silent: ended, last, logprobs });
    } catch (error) {
      // Text that cannot be parsed ends one request; only a failed step ends them all.
      return this.#failJob(job, 'its text could not be read', error);
    }
    const { deltas, stop, done } = taken;
    for (const delta of deltas) events.push(delta);
    if (events.length > READ_AHEAD * job.choices.size) this.#setPaused(job, true);
    const reason = choice.calledTools ? 'tool_calls' : 'stop';
    if (stop !== undefined) this.#finish(sequence, job, reason, stop);
    else if (ended || done) this.#finish(sequence, job, reason, stopped ? token : null);
    else if (last) this.#finish(sequence, job, 'length', null);
    else if (choice.matcher) this.#refreshMask(sequence, choice.matcher);
  }

  #setPaused(job: Job, paused: boolean): void {
    job.paused = paused;
    for (const sequence of job.choices.keys()) sequence.paused = paused;
    if (!paused) this.#wake();
  }

  #refreshMask(sequence: Sequence, matcher: TokenMatcher): void {
    sequence.mask = undefined;
    const failed = (error: unknown): void => {
      const job = this.#jobs.get(sequence);
      if (!job) return;
      this.#failJob(job, 'its grammar failed', error);
      this.#wake();
    };
    const ready = matcher
      .bitmask()
      .then((mask) => void (sequence.mask = mask), failed)
      .then(() => {
        if (this.#masks.delete(sequence)) this.#wake();
      });
    this.#masks.set(sequence, ready);
  }

  /** Ends one request with EngineError('internal'). */
  #failJob(job: Job, what: string, error: unknown): void {
    job.events.fail(new EngineError('internal', `the answer cannot be given: ${what} (${String(error)})`, { cause: error }));
    for (const other of job.choices.keys()) this.#drop(other);
  }

  /** Waits for the token masks that the grammar worker is computing, but no longer than MASK_WAIT_MS. */
  async #awaitMasks(): Promise<void> {
    if (this.#masks.size === 0) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, MASK_WAIT_MS)));
    await Promise.race([Promise.all(this.#masks.values()), late]);
    clearTimeout(timer);
  }

  #finish(sequence: Sequence, job: Job, reason: FinishReason, stopReason: string | number | null): void {
    const completionTokens = sequence.tokens.length - sequence.numPrompt;
    const { index } = job.choices.get(sequence)!;
    job.events.push({ type: 'finish', index, reason, stopReason, completionTokens, cachedTokens: sequence.cached });
    this.#drop(sequence);
    if (--job.unfinished === 0) job.events.end();
  }

  #drop(sequence: Sequence): void {
    this.#masks.delete(sequence);
    this.#jobs.get(sequence)?.choices.get(sequence)?.matcher?.dispose();
    this.#jobs.delete(sequence);
    this.#parts.scheduler.finish(sequence);
  }

  /** Ends every request and resolves `lost`, so that the engine is rebuilt. */
  #lose(error: EngineError): void {
    this.#fail(error);
    this.#resolveLost(error.message);
  }

  /** Ends every request with an error and refuses new ones. */
  #fail(error: EngineError): void {
    this.#closed = error;
    for (const [sequence, { events }] of [...this.#jobs]) {
      events.fail(error);
      this.#drop(sequence);
    }
  }
}
