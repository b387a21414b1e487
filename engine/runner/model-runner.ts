import type { BlockTable } from '../cache/block-table.ts';
import type { Device } from '../gpu/device.ts';
import type { Plan, Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import type { ForwardInput } from '../models/forward-input.ts';
import type { Decoder, DecoderWorkspace } from '../models/decoder.ts';
import type { KVCache } from '../ops/kv.ts';
import type { Batch } from '../scheduler/batch.ts';
import { indexBeyond } from '../util/math.ts';
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
    this.#sampler = new Sampler(device, vocabulary, limits.maxRunning, limits.maxRunning + limits.draftRows);
    this.#processors = new LogitProcessors(device, decoder.tokens, limits.maxRunning, this.#input);
  }

  /** Compiles every kernel, captures the decode plans and tries a few tokens; throws EngineError('invalid_model') when what comes out is not finite. */
  async warmUp(): Promise<void> {
    this.#encoder.encodeNothing(this.#input);
    this.#sampler.upload(this.#input.sampling, this.#limits.maxRunning);
    await warmUp(this.#device, { work: this.#work(), tryOut: () => this.#tryOut() });
  }

  *#work(): Generator<(rec: Recorder) => void> {
    const { maxRunning, prefillChunk } = this.#limits;
    const tensors = this.#tensors;
    const buckets = decodeBuckets(maxRunning);
    for (const bucket of buckets.slice(0, 2)) {
      for (const sampling of ['greedy', 'sampled'] as const) {
        yield (rec) => this.#record(rec, tensors.decodeShape(bucket, tensors.maxParts(bucket)), sampling);
        yield (rec) => this.#record(rec, tensors.decodeShape(bucket, 1), sampling);
      }
    }
    const rows = Math.min(maxRunning + prefillChunk, 2 * tensors.prefillTileRows);
    const prefill: StepShape = { rows, decodeTiles: 0, prefillTiles: 1, parts: 1, gather: true, logitRows: 1 };
    yield (rec) => this.#record(rec, prefill, 'greedy');
    // What is compiled by now is recorded once more, to be replayed.
    for (const bucket of buckets) {
      for (let parts = 1; parts <= tensors.maxParts(bucket); parts *= 2) {
        for (const sampling of ['greedy', 'sampled', 'processed'] as const) this.#plan(tensors.decodeShape(bucket, parts), sampling);
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
    }
    input.items.set([0, rows, 0, 0]);
    const fields = { rows, items: 1, decodes: 0, logitRows: rows, sampled: rows, gather: 1, longest: 0, greedy: 1, tableWords: 0 } as const;
    for (const [field, value] of Object.entries(fields)) input.set(field as keyof typeof fields, value);
    const shape = this.#tensors.upload(input);
    const run = (rec: Recorder, trace?: ForwardInput['trace']): Recorder => {
      this.#sampler.resolve(rec, this.#tensors.tokens, this.#ids, rows);
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
    const shape = this.#tensors.upload(input);
    this.#sampler.upload(input.sampling, shape.logitRows);
    const [count, greedy, processed] = [input.get('sampled'), input.get('greedy') !== 0, input.get('processed') !== 0];
    const logits = this.#workspace.logits!;
    const rec = this.#device.record('chat step');
    const sampling = processed ? 'processed' : greedy ? 'greedy' : 'sampled';
    if (shape.gather) this.#record(rec, shape, sampling);
    else rec.replay(this.#plan(shape, sampling));
    if (count === 0) {
      const { finished } = rec.submit();
      return { tokens: () => finished().then(() => new Uint32Array(0)) };
    }
    if (processed) {
      this.#processors.upload(input);
      this.#sampler.record(rec, this.#processors.process(rec, input, logits), shape.logitRows, greedy);
    }
    const reports = processed ? this.#processors.finish(rec, input, logits, this.#sampler.sampled) : undefined;
    const readback = rec.readback(this.#sampler.sampled, count * 4);
    rec.submit();
    const tokens = async (): Promise<Uint32Array> => new Uint32Array(await readback.data());
    if (!reports) return { tokens };
    const reported = input.reported.slice(0, input.get('reported'));
    return { tokens, logprobs: async () => parseLogprobs(reported, batch.sampled, await reports.data(), this.#limits.vocabulary) };
  }

  /** The captured plan of a decode batch's shape. */
  #plan(shape: StepShape, sampling: Sampling): Plan {
    const key = `decode ${shape.rows}, parts ${shape.parts}, ${sampling}`;
    let plan = this.#plans.get(key);
    if (!plan) {
      plan = this.#device.capture(key, (rec) => this.#record(rec, shape, sampling));
      this.#plans.set(key, plan);
    }
    return plan;
  }

  /** Appends a forward pass and, unless the logits are processed first, sampling. */
  #record(rec: Recorder, shape: StepShape, sampling: Sampling): void {
    this.#sampler.resolve(rec, this.#tensors.tokens, this.#ids, shape.rows);
    const logits = this.#workspace.forward(rec, this.#tensors.forwardInput(shape, this.#ids), this.#kv);
    if (shape.logitRows > 0 && sampling !== 'processed') this.#sampler.record(rec, logits, shape.logitRows, sampling === 'greedy');
  }
}
