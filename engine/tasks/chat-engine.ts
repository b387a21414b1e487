/** Chat: template -> tokens -> scheduler -> steps -> text, with the next step submitted before the last one's tokens are read. */
import type { ChatEvent, ChatRequest, EngineStatus, FinishReason, ModelInfo, TokenizeRequest } from '../api.ts';
import { BlockTable } from '../cache/block-table.ts';
import { PagePool } from '../cache/page-pool.ts';
import { prefillChunkSize, storageType } from '../config.ts';
import type { EngineConfig, ModelSource } from '../config.ts';
import { EngineError, assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { tokenIds } from '../models/llama/config.ts';
import { decoderFor } from '../models/registry.ts';
import { createKVCache } from '../ops/kv.ts';
import type { Platform } from '../platform/platform.ts';
import { kvPageCount } from '../runner/kv-budget.ts';
import { ModelRunner } from '../runner/model-runner.ts';
import type { TokenLogprobs } from '../runner/logit-processors.ts';
import type { StepResult } from '../runner/model-runner.ts';
import type { Batch } from '../scheduler/batch.ts';
import { schedulePolicy } from '../scheduler/policy.ts';
import { Scheduler } from '../scheduler/scheduler.ts';
import { Sequence } from '../scheduler/sequence.ts';
import { ChatTemplate } from '../text/chat-template.ts';
import { Grammars } from '../text/grammar.ts';
import type { GrammarLibrary, GrammarMatcher } from '../text/grammar.ts';
import { Tokenizer } from '../text/tokenizer.ts';
import { AsyncQueue } from '../util/async-queue.ts';
import { ceilDiv } from '../util/math.ts';
import { Checkpoint } from '../weights/safetensors.ts';
import { WeightLoader } from '../weights/weight-loader.ts';
import { ChatChoice } from './chat-choice.ts';
import { checkTokens, constraintOf, encodePrompt, parserOptions, resolveSampling } from './chat-request.ts';

type Json = Readonly<Record<string, unknown>>;

/** What surrounds the runner: everything with a test of its own without a GPU. */
interface ChatParts {
  readonly tokenizer: Tokenizer;
  readonly template: ChatTemplate;
  readonly scheduler: Scheduler;
  readonly pool: PagePool;
  readonly runner: { run(batch: Batch): StepResult };
  readonly generation: Json;
  readonly eos: ReadonlySet<number>;
  readonly context: number;
  readonly vocabulary: number;
  /** The model writes `<think>` before its answer. */
  readonly thinks: boolean;
  readonly grammars: () => Promise<Grammars>;
  /** Submit a step before the tokens of the one before are read. */
  readonly overlap: boolean;
}

interface SubmittedStep {
  readonly batch: Batch;
  readonly result: StepResult;
}

interface Request {
  readonly options: ChatRequest;
  readonly events: AsyncQueue<ChatEvent>;
  readonly choices: ReadonlyMap<Sequence, ChatChoice>;
  started: boolean;
  unfinished: number;
}

export class ChatEngine {
  readonly info: ModelInfo;
  readonly #parts: ChatParts;
  readonly #requests = new Map<Sequence, Request>();
  readonly #counters = { promptTokens: 0, generatedTokens: 0, cachedTokens: 0 };
  /** Masks under way: the next step waits for them. */
  readonly #masks = new Set<Promise<void>>();
  #nextId = 0;
  #closed: EngineError | undefined;
  #running: Promise<void> | undefined;

  constructor(info: ModelInfo, parts: ChatParts) {
    this.info = info;
    this.#parts = parts;
  }

  /** Loads a checkpoint folder, takes KV pages from what is left of the memory budget, compiles and warms up. */
  static async load(device: Device, platform: Platform, source: ModelSource, config: EngineConfig): Promise<ChatEngine> {
    const folder = source.path;
    const json = await readJson(platform, platform.join(folder, 'config.json'));
    const generationPath = platform.join(folder, 'generation_config.json');
    const generation = (await platform.exists(generationPath)) ? await readJson(platform, generationPath) : {};
    const tokenizer = await Tokenizer.load(platform, folder);
    const definition = decoderFor(json);
    const shape = definition.parseConfig(json);
    const checkpoint = await Checkpoint.open(platform, folder);
    const dtype = storageType(config.dtype);
    const wanted = Math.min(shape.maxPositions, config.contextLength);
    const before = device.stats.bufferBytes;
    const decoder = await definition.load(new WeightLoader(device, checkpoint, dtype), json, wanted);
    await checkpoint.close();
    const weightBytes = device.stats.bufferBytes - before;
    const kvType = config.kvCacheDtype === 'auto' ? dtype : config.kvCacheDtype;
    const { layers, kvHeads, headDim } = shape;
    const kvShape = { layers, kvHeads, headDim, pageSize: config.pageSize, dtype: kvType };
    const limits = runnerLimits(device, shape, config, wanted);
    const workspace = decoder.createWorkspace(device, limits.maxRunning + limits.prefillChunk, limits.maxRunning + limits.draftRows);
    const pages = kvPageCount(device, kvShape, { ...config, maxRunningRequests: limits.maxRunning }, wanted);
    const context = Math.min(wanted, pages * config.pageSize);
    const kv = createKVCache(device, kvShape, pages);
    const table = new BlockTable(limits.maxRunning, ceilDiv(context, config.pageSize));
    const pool = new PagePool(pages);
    const scheduler = new Scheduler(pool, table, {
      ...limits,
      pageSize: config.pageSize,
      maxQueued: config.maxQueuedRequests,
      policy: schedulePolicy(config.schedulePolicy),
      prefixCache: config.radixCache,
      promptLookup: config.promptLookup,
    });
    const runner = new ModelRunner(device, decoder, workspace, kv, table, { ...limits, context });
    await runner.warmUp();
    const id = source.id ?? folder.replace(/[\\/]+$/, '').replace(/^.*[\\/]/, '');
    platform.log(`${id}: ${pages} KV pages of ${config.pageSize} tokens (${kvType}), context ${context}, ${limits.maxRunning} sequences, prefill chunks of ${limits.prefillChunk}`); // prettier-ignore
    const info: ModelInfo = { id, task: 'chat', architecture: String(json['model_type']), parameters: decoder.parameters, weightBytes, contextLength: context }; // prettier-ignore
    const template = await ChatTemplate.load(platform, folder, tokenizer);
    const eos = new Set([...shape.eosTokenIds, ...tokenIds(generation['eos_token_id'])]);
    const { vocabulary } = shape;
    const thinks = tokenizer.tokenId('<think>') !== undefined;
    const grammars = lazyGrammars(platform, tokenizer, vocabulary, [...eos]);
    return new ChatEngine(info, {
      tokenizer,
      template,
      scheduler,
      pool,
      runner,
      generation,
      eos,
      context,
      vocabulary,
      thinks,
      grammars,
      // Guessing takes every token that came before.
      overlap: config.overlapSchedule && config.promptLookup === undefined,
    });
  }

  /** Counters and gauges for the engine's snapshot. */
  status(): Pick<
    EngineStatus,
    | 'running'
    | 'waiting'
    | 'kvPagesTotal'
    | 'kvPagesUsed'
    | 'promptTokens'
    | 'generatedTokens'
    | 'cachedTokens'
    | 'draftedTokens'
    | 'acceptedTokens'
  > {
    const { scheduler, pool } = this.#parts;
    const { numRunning: running, numWaiting: waiting, numPagesHeld: kvPagesUsed, guesses } = scheduler;
    const { drafted: draftedTokens, accepted: acceptedTokens } = guesses;
    return { running, waiting, kvPagesTotal: pool.size, kvPagesUsed, draftedTokens, acceptedTokens, ...this.#counters };
  }

  /** Answers a request; throws EngineError before the first event when it cannot be served. Ending the iteration aborts. */
  async *generate(request: ChatRequest, signal: AbortSignal): AsyncGenerator<ChatEvent> {
    const events = new AsyncQueue<ChatEvent>();
    const aborted = (): void => events.fail(new EngineError('aborted', 'the request was aborted'));
    if (signal.aborted) throw new EngineError('aborted', 'the request was aborted');
    const { choices } = await this.#enqueue(request, events);
    signal.addEventListener('abort', aborted, { once: true });
    if (signal.aborted) aborted();
    try {
      this.#wake();
      yield* events;
    } finally {
      signal.removeEventListener('abort', aborted);
      for (const sequence of choices.keys()) this.#drop(sequence);
    }
  }

  /** Token ids of a prompt, or of messages as the template renders them. */
  tokenize({ prompt, messages = [], addSpecialTokens = true }: TokenizeRequest): readonly number[] {
    const { tokenizer } = this.#parts;
    if (prompt !== undefined) return tokenizer.encode(prompt, { addSpecialTokens });
    return encodePrompt(this.#parts, { messages, sampling: {} }).tokens;
  }

  /** Text of token ids, special tokens included. */
  detokenize(tokens: readonly number[]): string {
    checkTokens(tokens, this.#parts.vocabulary, 'tokens');
    return this.#parts.tokenizer.decode(tokens, { skipSpecialTokens: false });
  }

  /** Forgets the cached prefixes that no running sequence reads. */
  flushCache(): void {
    this.#parts.scheduler.flushCache();
  }

  /** Aborts what runs and waits for the last step. */
  async close(): Promise<void> {
    this.#fail(new EngineError('shutting_down', 'the engine is closing'));
    await this.#running;
  }

  /** Validates, tokenises and queues a request. */
  async #enqueue(options: ChatRequest, events: AsyncQueue<ChatEvent>): Promise<Request> {
    if (this.#closed) throw this.#closed;
    const { tokenizer, scheduler, thinks } = this.#parts;
    const { tokens: promptTokens, text: prompt } = encodePrompt(this.#parts, options);
    const maxTokens = this.#maxTokens(promptTokens.length, options);
    const constraint = constraintOf(options);
    const sampling = resolveSampling(options, this.#parts, constraint !== undefined);
    const choices = new Map<Sequence, ChatChoice>();
    const parser = parserOptions(options, prompt, thinks);
    for (let index = 0; index < (options.n ?? 1); index++) {
      const salt = options.cacheSalt === undefined ? {} : { salt: options.cacheSalt };
      const sequence = new Sequence({ id: this.#nextId++, promptTokens, maxTokens, sampling, choice: index, ...salt });
      const matcher = constraint && (await (await this.#parts.grammars()).start(constraint));
      sequence.mask = await matcher?.bitmask();
      const { stop = [], skipSpecialTokens = true } = options;
      choices.set(sequence, new ChatChoice(tokenizer, { index, stop, skipSpecialTokens, parser, matcher }));
    }
    // Loading a grammar takes a moment, in which the engine may have closed.
    if (this.#closed) throw this.#closed;
    const request: Request = { options, events, choices, started: false, unfinished: choices.size };
    scheduler.add([...choices.keys()]);
    for (const sequence of choices.keys()) this.#requests.set(sequence, request);
    return request;
  }

  /** Room for the answer; throws when prompt and answer do not fit. */
  #maxTokens(prompt: number, { maxTokens: asked, prompt: raw }: ChatRequest): number {
    const { context } = this.#parts;
    const param = raw === undefined ? 'messages' : 'prompt';
    if (prompt === 0) throw new EngineError('invalid_request', 'the prompt is empty', { param });
    if (prompt >= context || prompt + (asked ?? 1) > context) {
      const also = asked === undefined ? '' : ` and ${asked} tokens were asked for`;
      throw new EngineError('context_length_exceeded', `the prompt has ${prompt} tokens${also}; the context holds ${context}`, {
        param,
        details: { n_prompt_tokens: prompt, n_ctx: context },
      });
    }
    return Math.min(asked ?? Infinity, context - prompt);
  }

  /** Starts the loop unless it runs. */
  #wake(): void {
    this.#running ??= this.#loop().catch((error: unknown) => {
      const lost = (): EngineError => new EngineError('device_lost', `the GPU stopped answering: ${String(error)}`, { cause: error });
      this.#fail(error instanceof EngineError ? error : lost());
    });
  }

  /** Steps until nothing is left; the tokens of a step are read after the next step is submitted. */
  async #loop(): Promise<void> {
    const { scheduler, runner, overlap } = this.#parts;
    let submitted: SubmittedStep | undefined;
    try {
      // Requests of the same moment share the first step.
      await Promise.resolve();
      while (submitted || scheduler.numRunning + scheduler.numWaiting > 0) {
        while (this.#masks.size > 0) await Promise.all(this.#masks);
        const batch = scheduler.next();
        assert(batch || submitted, `nothing to do for ${scheduler.numRunning} running and ${scheduler.numWaiting} waiting sequences`);
        const current = batch && { batch, result: runner.run(batch) };
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

  /** Takes the tokens of a step. */
  async #complete({ batch, result }: SubmittedStep): Promise<void> {
    const tokens = await result.tokens();
    const logprobs = await result.logprobs?.();
    this.#parts.scheduler.complete(batch, tokens, (sequence, token, row) => this.#take(sequence, token, logprobs?.[row]));
  }

  /** A request starts with its first step. */
  #announce({ prefills }: Batch): void {
    for (const { sequence } of prefills) {
      const request = this.#requests.get(sequence);
      if (!request || request.started) continue;
      request.started = true;
      const { numPrompt: promptTokens, cached: cachedTokens } = sequence;
      this.#counters.promptTokens += promptTokens;
      this.#counters.cachedTokens += cachedTokens;
      request.events.push({ type: 'start', promptTokens, cachedTokens });
    }
  }

  /** One new token of a sequence: text, stop conditions, events. */
  #take(sequence: Sequence, token: number, logprobs: TokenLogprobs | undefined): void {
    const request = this.#requests.get(sequence);
    const choice = request?.choices.get(sequence);
    if (!request || !choice) return;
    const { options, events } = request;
    this.#counters.generatedTokens++;
    const stopped = options.stopTokenIds?.includes(token) ?? false;
    const allowed = choice.matcher?.accept(token) ?? true;
    const ended = stopped || !allowed || choice.matcher?.terminated === true || (this.#parts.eos.has(token) && !options.ignoreEos);
    const last = ended || sequence.tokens.length - sequence.numPrompt >= sequence.maxTokens;
    const { deltas, stop } = choice.take(token, { silent: ended, last, logprobs });
    for (const delta of deltas) events.push(delta);
    const reason = choice.calledTools ? 'tool_calls' : 'stop';
    if (stop !== undefined) this.#finish(sequence, request, 'stop', stop);
    else if (ended) this.#finish(sequence, request, reason, stopped ? token : null);
    else if (last) this.#finish(sequence, request, 'length', null);
    else if (choice.matcher) this.#refreshMask(sequence, choice.matcher);
  }

  #refreshMask(sequence: Sequence, matcher: GrammarMatcher): void {
    sequence.mask = undefined;
    const ready = matcher.bitmask().then((mask) => {
      sequence.mask = mask;
      this.#masks.delete(ready);
    });
    this.#masks.add(ready);
  }

  #finish(sequence: Sequence, request: Request, reason: FinishReason, stopReason: string | number | null): void {
    const completionTokens = sequence.tokens.length - sequence.numPrompt;
    const { index } = request.choices.get(sequence)!;
    request.events.push({ type: 'finish', index, reason, stopReason, completionTokens, cachedTokens: sequence.cached });
    this.#drop(sequence);
    if (--request.unfinished === 0) request.events.end();
  }

  #drop(sequence: Sequence): void {
    this.#requests.get(sequence)?.choices.get(sequence)?.matcher?.dispose();
    this.#requests.delete(sequence);
    this.#parts.scheduler.finish(sequence);
  }

  /** Ends every request with an error and refuses new ones. */
  #fail(error: EngineError): void {
    this.#closed = error;
    for (const [sequence, { events }] of [...this.#requests]) {
      events.fail(error);
      this.#drop(sequence);
    }
  }
}

/** Sequences that may have all their guesses verified in one step; more share the rows. Verifying pays while a step's rows are few. */
const GUESSING = 8;

/** What one step may hold: the adapter's bindings are limited. */
function runnerLimits(
  { caps }: Device,
  { widestRow, vocabulary }: { readonly widestRow: number; readonly vocabulary: number },
  config: EngineConfig,
  context: number,
): { readonly maxRunning: number; readonly prefillChunk: number; readonly draftRows: number } {
  const logitRows = Math.floor(caps.maxBindingBytes / 4 / vocabulary);
  const maxRunning = Math.min(config.maxRunningRequests, logitRows);
  const draftRows = Math.min(GUESSING * (config.promptLookup?.draftTokens ?? 0), logitRows - maxRunning);
  const rows = Math.floor(caps.maxBindingBytes / 4 / widestRow);
  const prefillChunk = Math.min(prefillChunkSize(config.chunkedPrefillSize, caps.software), context, rows - maxRunning);
  if (maxRunning < 1 || prefillChunk < 1) {
    throw new EngineError('out_of_memory', `a row of ${widestRow} or ${vocabulary} values does not fit this adapter's bindings of ${caps.maxBindingBytes} bytes`); // prettier-ignore
  }
  return { maxRunning, prefillChunk, draftRows };
}

async function readJson(platform: Platform, path: string): Promise<Json> {
  const text = await platform.readText(path);
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new EngineError('invalid_model', `${path} is not JSON: ${String(error)}`, { cause: error });
  }
}

/** The grammar library is large: it is loaded at the first request that needs it. */
function lazyGrammars(
  platform: Platform,
  tokenizer: Tokenizer,
  vocabulary: number,
  stopTokenIds: readonly number[],
): () => Promise<Grammars> {
  let loaded: Promise<Grammars> | undefined;
  const load = async (): Promise<Grammars> => {
    const { tokens, type } = tokenizer.vocabulary;
    // Checkpoints pad their vocabulary: tokens that nothing spells can never be allowed.
    const padded = Array.from({ length: vocabulary }, (_, id) => tokens[id] ?? '');
    return Grammars.create((await platform.grammarLibrary()) as GrammarLibrary, { tokens: padded, type, stopTokenIds });
  };
  return () => (loaded ??= load());
}
