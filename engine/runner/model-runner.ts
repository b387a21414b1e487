import type { BlockTable } from '../cache/block-table.ts';
import type { Device } from '../gpu/device.ts';
import { allocateNow } from '../gpu/memory.ts';
import type { Plan, Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import type { ForwardInput } from '../models/forward-input.ts';
import type { Decoder, DecoderShape, DecoderWorkspace } from '../models/decoder.ts';
import { growKVCache, hasPages } from '../ops/kv.ts';
import type { KVCache } from '../ops/kv.ts';
import { MANY_ROWS } from '../ops/linear.ts';
import { growStates, writeSpan } from '../ops/states.ts';
import type { Batch } from '../scheduler/batch.ts';
import { ceilDiv, indexBeyond } from '../util/math.ts';
import { HeadSteps } from './head-steps.ts';
import { LogitProcessors, parseLogprobs } from './logit-processors.ts';
import type { TokenLogprobs } from './logit-processors.ts';
import { Sampler } from './sampler.ts';
import { StepEncoder } from './step-encoder.ts';
import { StepInput, decodeBuckets } from './step-input.ts';
import type { StepLimits } from './step-input.ts';
import { StepTensors } from './step-tensors.ts';
import type { StepShape } from './step-tensors.ts';
import { warmUp } from './warm-up.ts';

export type RunnerOptions = Omit<StepLimits, 'columns' | 'vocabulary'>;

/** A submitted step. */
export interface StepResult {
  /** The sampled tokens, one for each of batch.sampled; resolves when the step has completed. */
  tokens(): Promise<Uint32Array>;
  /** The draft head's tokens for all FROM_HEAD drafts, in batch order; absent = the batch has none. */
  headDrafts?(): Promise<Uint32Array>;
  /** One entry for each of batch.sampled; undefined for sequences that did not ask for log-probabilities. */
  logprobs?(): Promise<readonly (TokenLogprobs | undefined)[]>;
}

/** Tokens of the prompt that tries a loaded model out. */
const TRIED_TOKENS = 2;

/** How a step ends: by the largest logits, by sampling, or with logit processing, which stays outside of the captured plan. */
type Sampling = 'greedy' | 'sampled' | 'processed';

/**
 * Runs batches on one device: encodes them (StepEncoder), uploads them (StepTensors) and submits them. Decode-only batches are padded to a
 * bucket of rows (decodeBuckets) and replay a captured plan: no JavaScript of the model runs and no GPU object is made. Batches with prompt
 * chunks are recorded anew each time.
 */
export class ModelRunner {
  readonly #device: Device;
  readonly #kv: KVCache;
  readonly #limits: StepLimits;
  readonly #workspace: DecoderWorkspace;
  readonly #encoder: StepEncoder;
  readonly #input: StepInput;
  readonly #tensors: StepTensors;
  /** [maxRunning + prefillChunk] u32: token ids of the step's rows, with those that the previous step sampled filled in. */
  readonly #ids: Tensor;
  readonly #sampler: Sampler;
  readonly #processors: LogitProcessors;
  /** Undefined in models without a draft head. */
  readonly #head: HeadSteps | undefined;
  readonly #plans = new Map<string, Plan>();

  /** `workspace` must hold maxRunning + prefillChunk rows, maxRunning + draftRows of them with logits. */
  constructor(device: Device, decoder: Decoder, workspace: DecoderWorkspace, kv: KVCache, table: BlockTable, options: RunnerOptions) {
    const { vocabulary } = decoder.shape;
    const limits = { ...options, columns: table.columns, vocabulary };
    this.#device = device;
    this.#kv = kv;
    this.#limits = limits;
    this.#workspace = workspace;
    this.#encoder = new StepEncoder(table, kv.pageSize, limits);
    this.#input = new StepInput(limits);
    this.#tensors = new StepTensors(device, decoder, limits);
    this.#ids = device.tensor('ids', 'u32', [limits.maxRunning + limits.prefillChunk]);
    this.#sampler = new Sampler(device, vocabulary, limits.maxRunning, limits.maxRunning + limits.draftRows, limits.headDrafts);
    this.#head = headSteps(device, limits, kv.pageSize);
    this.#processors = new LogitProcessors(device, decoder.tokens, limits.maxRunning, this.#input);
  }

  /** Device bytes of the tensors that a runner makes itself, for an unsplit model of this shape. */
  static bytes(device: Device, shape: DecoderShape, { pageSize, ...options }: RunnerOptions & { readonly pageSize: number }): number {
    const { maxRunning, prefillChunk, draftRows, headDrafts, context } = options;
    const { vocabulary } = shape;
    const limits = { ...options, columns: ceilDiv(context, pageSize), vocabulary };
    const processors = new LogitProcessors(device, { from: 0, to: vocabulary }, maxRunning, new StepInput(limits));
    const others = device.measure(() => {
      new StepTensors(device, { shape }, limits);
      device.tensor('ids', 'u32', [maxRunning + prefillChunk]);
      new Sampler(device, vocabulary, maxRunning, maxRunning + draftRows, headDrafts);
      headSteps(device, limits, pageSize);
    });
    return others + processors.bytes;
  }

  /** Makes room for logit processing, which most requests do without. Throws EngineError('out_of_memory') when the device has none. */
  reserveProcessing(): Promise<void> {
    return this.#processors.reserve();
  }

  /** Compiles every kernel and runs a short prompt; throws EngineError('invalid_model') when its logits are not finite. */
  async warmUp(): Promise<void> {
    this.#encoder.encodeNothing(this.#input);
    this.#tensors.uploadSettings(this.#input);
    await warmUp(this.#device, { work: this.#work(), sizes: this.#sizes(), tryOut: () => this.#tryOut() });
  }

  /** Work of every kind in small sizes: decodes of the two smallest buckets, a prompt and a draft; then captures a plan for each bucket. */
  *#work(): Generator<(rec: Recorder) => void> {
    for (const bucket of decodeBuckets(this.#limits.maxRunning).slice(0, 2)) yield* this.#decodes(bucket);
    yield* this.#prefills(2 * this.#tensors.prefillTileRows, 1);
    if (this.#head) yield (rec) => this.#draft(rec, this.#head!, 1, 1);
    // One plan per bucket makes the bind groups that the bucket's other plans share.
    for (const bucket of decodeBuckets(this.#limits.maxRunning)) this.#plan(this.#tensors.decodeShape(bucket, 1), 'sampled');
  }

  /** Work of other sizes: the largest prompt, the smallest prompt of each range that takes the same kernels, then decodes of all sizes. */
  *#sizes(): Generator<(rec: Recorder) => void> {
    const { maxRunning, prefillChunk, draftRows, promptsApart } = this.#limits;
    yield* this.#prefills(maxRunning + prefillChunk, maxRunning + draftRows);
    // Each range's kernels run at its smallest size; else the largest prompt would run for them, which takes a large model a minute.
    for (const rows of MANY_ROWS) yield* this.#prefills(rows, 1);
    for (const bucket of [...decodeBuckets(maxRunning)].reverse()) yield* this.#decodes(bucket);
    // With `promptsApart` a batch may have generated tokens' rows before prompt rows: as few as a decode bucket, or as many as a step has.
    for (const rows of promptsApart ? [...decodeBuckets(maxRunning), maxRunning + prefillChunk] : [])
      yield* this.#prefills(rows + 1, 1, rows);
    for (const bucket of this.#head ? [...decodeBuckets(maxRunning)].reverse() : [])
      yield (rec) => this.#draft(rec, this.#head!, 1, bucket);
  }

  /** Steps without LoRA adapters and, in models that have some, with them: these take kernels of their own, and none that are fused. */
  get #withLoras(): readonly boolean[] {
    return (this.#limits.loraColumns ?? 0) > 0 ? [false, true] : [false];
  }

  *#prefills(wanted: number, logitRows: number, answers = 0): Generator<(rec: Recorder) => void> {
    for (const hasLora of this.#withLoras) {
      const shape = this.#tensors.prefillShape(wanted, logitRows, answers, hasLora);
      yield (rec) => this.#record(rec, shape, 'greedy');
    }
  }

  /**
   * Decode batches of one bucket, by sampling and parts: recorded where only their kernels are collected, replayed from a plan where they
   * run.
   */
  *#decodes(bucket: number): Generator<(rec: Recorder) => void> {
    const tensors = this.#tensors;
    for (const sampling of ['greedy', 'sampled'] as const) {
      for (const parts of new Set([tensors.maxParts(bucket), 1])) {
        for (const hasLora of this.#withLoras) {
          const shape = tensors.decodeShape(bucket, parts, hasLora);
          yield (rec) => (rec.mode === 'dry' ? this.#record(rec, shape, sampling) : rec.replay(this.#plan(shape, sampling)));
        }
      }
    }
  }

  /**
   * Runs a short prompt in page 0, which no sequence owns yet. Returns a message naming the first stage whose values are not finite, or
   * undefined.
   */
  async #tryOut(): Promise<string | undefined> {
    const input = this.#input;
    const { maxRunning, prefillChunk, draftRows, context, vocabulary } = this.#limits;
    const rows = Math.min(TRIED_TOKENS, prefillChunk, context, this.#kv.pageSize, maxRunning + draftRows);
    for (let row = 0; row < rows; row++) {
      input.tokens[row] = Math.floor((vocabulary * (row + 1)) / (rows + 1));
      [input.positions[row], input.slots[row], input.logitIndices[row]] = [row, row, row];
      if (this.#limits.hasWindows) input.windowSlots[row] = row;
    }
    input.items.set([0, rows, 0, 0]);
    writeSpan(input.spans, 0, { first: 0, rows, write: 0 });
    const promptFrom = this.#limits.promptsApart ? 0 : rows;
    const fields = {
      rows,
      promptFrom,
      items: 1,
      decodes: 0,
      logitRows: rows,
      sampled: rows,
      gather: 1,
      longest: 0,
      greedy: 1,
      tableWords: 0,
      hasLora: 0,
    } as const;
    for (const [field, value] of Object.entries(fields)) input.set(field as keyof typeof fields, value);
    const shape = this.#tensors.upload(input);
    const run = (rec: Recorder, trace?: ForwardInput['trace']): Recorder => {
      this.#sampler.resolve(rec, this.#tensors.tokens(shape), this.#ids, rows);
      this.#workspace.forward(rec, { ...this.#tensors.forwardInput(shape, this.#ids), ...(trace && { trace }) }, this.#kv);
      return rec;
    };
    const rec = run(this.#device.record('first tokens'));
    const logits = rec.readback(this.#workspace.logits!, rows * vocabulary * 4);
    rec.submit();
    if (indexBeyond(new Float32Array(await logits.data())) < 0) return undefined;
    const stages: { readonly stage: string; readonly values: Tensor }[] = [];
    const traced = this.#device.record('first tokens, traced');
    run(traced, (stage, value) => {
      const values = this.#device.tensor(stage, 'f32', [rows, value.shape[1]!]);
      traced.copy(value, values, values.byteLength);
      stages.push({ stage, values });
    });
    traced.submit();
    let first = 'logits';
    for (const { stage, values } of stages.reverse())
      if (indexBeyond((await this.#device.read(values)) as Float32Array) >= 0) first = stage;
    return `the model's first values are not finite from '${first}' on`;
  }

  /** Submits one step without waiting for it; its tokens are read through the result. */
  run(batch: Batch): StepResult {
    const input = this.#input;
    this.#encoder.encode(batch, input);
    const given = this.#grow(input);
    const shape = this.#tensors.upload(input);
    const [count, greedy, processed] = [input.get('sampled'), input.get('greedy') !== 0, input.get('processed') !== 0];
    const logits = this.#workspace.logits!;
    this.#head?.uploadDrafts(batch);
    this.#head?.uploadFollow(batch, shape.rows);
    const rec = this.#device.record('chat step');
    if (this.#head && this.#head.rounds > 0) this.#draft(rec, this.#head, this.#head.rounds, this.#head.rows);
    const sampling = processed ? 'processed' : greedy ? 'greedy' : 'sampled';
    if (shape.gather) this.#record(rec, shape, sampling);
    else rec.replay(this.#plan(shape, sampling));
    if (count === 0) {
      const { finished } = rec.submit();
      return { tokens: () => Promise.all([finished(), given]).then(() => new Uint32Array(0)) };
    }
    if (processed) {
      this.#processors.upload(input);
      this.#sample(rec, this.#processors.process(rec, input, logits), shape, greedy);
    }
    const reports = processed ? this.#processors.finish(rec, input, logits, this.#sampler.sampled) : undefined;
    const readback = rec.readback(this.#sampler.sampled, count * 4);
    const read = this.#head && this.#head.rounds > 0 ? rec.readback(this.#sampler.lastTokens) : undefined;
    rec.submit();
    const tokens = async (): Promise<Uint32Array> => {
      const data = await readback.data();
      await given;
      return new Uint32Array(data);
    };
    const headDrafts = read && (async () => this.#head!.drafts(batch, new Uint32Array(await read.data())));
    const result = { tokens, ...(headDrafts && { headDrafts }) };
    if (!reports) return result;
    const reported = input.reported.slice(0, input.get('reported'));
    return { ...result, logprobs: async () => parseLogprobs(reported, batch.sampled, await reports.data(), this.#limits.vocabulary) };
  }

  /** Grows the KV cache and the recurrent states to what a step uses. The promise rejects when the device had no memory for that. */
  #grow(input: StepInput): Promise<void> | undefined {
    const { states } = this.#kv;
    const [pages, windows, slots] = [input.get('pages'), input.get('windowPages'), input.get('states')];
    if (hasPages(this.#kv, pages, windows) && slots <= (states?.slots ?? 0)) return undefined;
    const { made: moved, given } = allocateNow(this.#device, 'more KV pages', () => {
      const pagesMoved = growKVCache(this.#device, this.#kv, pages, windows);
      return (states !== undefined && growStates(this.#device, states, slots)) || pagesMoved;
    });
    if (moved) this.#plans.clear();
    return given;
  }

  /** The captured plan for a decode batch's shape, captured at first use. */
  #plan(shape: StepShape, sampling: Sampling): Plan {
    const key = `decode ${shape.rows}, parts ${shape.parts}, ${sampling}${shape.hasLora ? ', with adapters' : ''}`;
    let plan = this.#plans.get(key);
    if (!plan) {
      plan = this.#device.capture(key, (rec) => this.#record(rec, shape, sampling));
      this.#plans.set(key, plan);
    }
    return plan;
  }

  /** Appends `rounds` passes of the draft head, each of which guesses one more token for `rows` sequences. */
  #draft(rec: Recorder, head: HeadSteps, rounds: number, rows: number): void {
    const shape = this.#tensors.decodeShape(rows, this.#tensors.partsOf(rows, head.longest));
    this.#sampler.resolve(rec, head.tokens, head.ids, rows);
    for (let round = 0; round < rounds; round++) {
      const logits = this.#workspace.draft!(rec, head.draftInput(round, this.#tensors.forwardInput(shape, head.ids)), this.#kv);
      this.#sampler.draft(rec, { logits, settings: head.settings(round), ids: head.ids, rows });
    }
  }

  /** Appends a forward pass and, unless logits are processed first, the sampler. */
  #record(rec: Recorder, shape: StepShape, sampling: Sampling): void {
    this.#sampler.resolve(rec, this.#tensors.tokens(shape), this.#ids, shape.rows);
    const follow = this.#head?.follow(shape.gather ? undefined : shape.rows);
    const input = { ...this.#tensors.forwardInput(shape, this.#ids), ...(follow && { follow }) };
    const logits = this.#workspace.forward(rec, input, this.#kv);
    if (shape.logitRows > 0 && sampling !== 'processed') this.#sample(rec, logits, shape, sampling === 'greedy');
  }

  #sample(rec: Recorder, logits: Tensor, shape: StepShape, greedy: boolean): void {
    this.#sampler.record(rec, { logits, settings: this.#tensors.settings(shape), rows: shape.logitRows, greedy });
  }
}

function headSteps(device: Device, limits: StepLimits, pageSize: number): HeadSteps | undefined {
  const { headDrafts = 0 } = limits;
  return headDrafts > 0 ? new HeadSteps(device, { ...limits, headDrafts }, pageSize) : undefined;
}
