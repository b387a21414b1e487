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
  /** What the model's head has guessed for those FROM_HEAD, in the batch's order; absent = there are none. */
  guesses?(): Promise<Uint32Array>;
  /** By row of batch.sampled, of the sequences that asked for them. */
  logprobs?(): Promise<readonly (TokenLogprobs | undefined)[]>;
}

/** Tokens of the prompt that a loaded model is tried with. */
const TRIED_TOKENS = 2;

/** How a step ends: largest logit, a draw, or outside the captured plan because a sequence asks for more. */
type Sampling = 'greedy' | 'sampled' | 'processed';

/**
 * Runs batches on one device: encodes them (StepEncoder) and submits them. Decode-only batches are padded to a power of two of rows and
 * replay a captured plan: no JavaScript of the model runs and no GPU object is made. Batches with prompt chunks are recorded as they come.
 */
export class ModelRunner {
  readonly #device: Device;
  readonly #kv: KVCache;
  readonly #limits: StepLimits;
  readonly #workspace: DecoderWorkspace;
  readonly #encoder: StepEncoder;
  readonly #input: StepInput;
  readonly #tensors: StepTensors;
  /** Token ids of the rows, those of the step before filled in. */
  readonly #ids: Tensor;
  readonly #sampler: Sampler;
  readonly #processors: LogitProcessors;
  /** Of a model with a head that guesses. */
  readonly #head: HeadSteps | undefined;
  readonly #plans = new Map<string, Plan>();

  /** `workspace` holds maxRunning + prefillChunk rows, of which maxRunning + draftRows give logits. */
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

  /** Bytes of the tensors of its own, for a model of this shape that is not split. */
  static bytes(device: Device, shape: DecoderShape, { pageSize, ...options }: RunnerOptions & { readonly pageSize: number }): number {
    const { maxRunning, prefillChunk, draftRows, headDrafts, context } = options;
    const { vocabulary } = shape;
    const limits = { ...options, columns: ceilDiv(context, pageSize), vocabulary };
    return device.measure(() => {
      new StepTensors(device, { shape }, limits);
      device.tensor('ids', 'u32', [maxRunning + prefillChunk]);
      new Sampler(device, vocabulary, maxRunning, maxRunning + draftRows, headDrafts);
      headSteps(device, limits, pageSize);
    });
  }

  /** Compiles every kernel and tries a few tokens; throws EngineError('invalid_model') when what comes out is not finite. */
  async warmUp(): Promise<void> {
    this.#encoder.encodeNothing(this.#input);
    this.#tensors.uploadSettings(this.#input);
    await warmUp(this.#device, { work: this.#work(), sizes: this.#sizes(), tryOut: () => this.#tryOut() });
  }

  /** The smallest decodes and a prompt; then all is compiled. */
  *#work(): Generator<(rec: Recorder) => void> {
    for (const bucket of decodeBuckets(this.#limits.maxRunning).slice(0, 2)) yield* this.#decodes(bucket);
    yield this.#prefill(2 * this.#tensors.prefillTileRows, 1);
    if (this.#head) yield (rec) => this.#guess(rec, this.#head!, 1, 1);
    // Kernels differ with the rows: one plan of each size makes the bind groups that the others share.
    for (const bucket of decodeBuckets(this.#limits.maxRunning)) this.#plan(this.#tensors.decodeShape(bucket, 1), 'sampled');
  }

  /** The largest prompt, the smallest of those that take the same kernels, then decodes of all sizes. */
  *#sizes(): Generator<(rec: Recorder) => void> {
    const { maxRunning, prefillChunk, draftRows, promptsApart } = this.#limits;
    yield this.#prefill(maxRunning + prefillChunk, maxRunning + draftRows);
    // Otherwise the largest would be run for what it alone compiles, which takes a large model a minute.
    for (const rows of MANY_ROWS) yield this.#prefill(rows, 1);
    for (const bucket of [...decodeBuckets(maxRunning)].reverse()) yield* this.#decodes(bucket);
    // Beside prompts answers have nothing but their products in one dispatch; and what is computed again of them may be as long.
    for (const rows of promptsApart ? [...decodeBuckets(maxRunning), maxRunning + prefillChunk] : [])
      yield this.#prefill(rows + 1, 1, rows);
    for (const bucket of this.#head ? [...decodeBuckets(maxRunning)].reverse() : [])
      yield (rec) => this.#guess(rec, this.#head!, 1, bucket);
  }

  #prefill(wanted: number, logitRows: number, answers = 0): (rec: Recorder) => void {
    const shape = this.#tensors.prefillShape(wanted, logitRows, answers);
    return (rec) => this.#record(rec, shape, 'greedy');
  }

  /** A decode batch as it is recorded where its kernels are asked for, and replayed where it is run. */
  *#decodes(bucket: number): Generator<(rec: Recorder) => void> {
    const tensors = this.#tensors;
    for (const sampling of ['greedy', 'sampled'] as const) {
      for (const parts of new Set([tensors.maxParts(bucket), 1])) {
        const shape = tensors.decodeShape(bucket, parts);
        yield (rec) => (rec.mode === 'dry' ? this.#record(rec, shape, sampling) : rec.replay(this.#plan(shape, sampling)));
      }
    }
  }

  /** Runs a short prompt in the first page, which nobody has yet, and looks for the first stage that leaves the finite numbers. */
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

  /** Submits one step; its tokens are read later. */
  run(batch: Batch): StepResult {
    const input = this.#input;
    this.#encoder.encode(batch, input);
    const given = this.#grow(input);
    const shape = this.#tensors.upload(input);
    const [count, greedy, processed] = [input.get('sampled'), input.get('greedy') !== 0, input.get('processed') !== 0];
    const logits = this.#workspace.logits!;
    this.#head?.uploadGuesses(batch);
    this.#head?.uploadFollow(batch, shape.rows);
    const rec = this.#device.record('chat step');
    if (this.#head && this.#head.rounds > 0) this.#guess(rec, this.#head, this.#head.rounds, this.#head.rows);
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
    const guessed = this.#head && this.#head.rounds > 0 ? rec.readback(this.#sampler.lastTokens) : undefined;
    rec.submit();
    const tokens = async (): Promise<Uint32Array> => {
      const data = await readback.data();
      await given;
      return new Uint32Array(data);
    };
    const guesses = guessed && (async () => this.#head!.guesses(batch, new Uint32Array(await guessed.data())));
    const result = { tokens, ...(guesses && { guesses }) };
    if (!reports) return result;
    const reported = input.reported.slice(0, input.get('reported'));
    return { ...result, logprobs: async () => parseLogprobs(reported, batch.sampled, await reports.data(), this.#limits.vocabulary) };
  }

  /** Room for the pages and the slots for states that a step uses; the promise rejects when the device had none. */
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

  /** The captured plan of a decode batch's shape: captured when first used, without making a GPU object that the others have not made. */
  #plan(shape: StepShape, sampling: Sampling): Plan {
    const key = `decode ${shape.rows}, parts ${shape.parts}, ${sampling}`;
    let plan = this.#plans.get(key);
    if (!plan) {
      plan = this.#device.capture(key, (rec) => this.#record(rec, shape, sampling));
      this.#plans.set(key, plan);
    }
    return plan;
  }

  /** Appends rounds of guesses for `rows` sequences. */
  #guess(rec: Recorder, head: HeadSteps, rounds: number, rows: number): void {
    const shape = this.#tensors.decodeShape(rows, this.#tensors.partsOf(rows, head.longest));
    this.#sampler.resolve(rec, head.tokens, head.ids, rows);
    for (let round = 0; round < rounds; round++) {
      const logits = this.#workspace.guess!(rec, head.guess(round, this.#tensors.forwardInput(shape, head.ids)), this.#kv);
      this.#sampler.guess(rec, { logits, settings: head.settings(round), ids: head.ids, rows });
    }
  }

  /** Appends a forward pass and, unless the logits are processed first, sampling. */
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
