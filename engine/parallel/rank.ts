import type { Device } from '../gpu/device.ts';
import { allocateNow } from '../gpu/memory.ts';
import type { Plan, Recorder } from '../gpu/recorder.ts';
import type { Decoder, DecoderWorkspace, Stage } from '../models/decoder.ts';
import { growKVCache, hasPages } from '../ops/kv.ts';
import type { KVCache } from '../ops/kv.ts';
import { FROM_DEVICE } from '../ops/sample.ts';
import { readSlot } from '../ops/sampling-row.ts';
import { StepInput, decodeBuckets } from '../runner/step-input.ts';
import type { StepLimits } from '../runner/step-input.ts';
import { StepTensors } from '../runner/step-tensors.ts';
import type { StepShape } from '../runner/step-tensors.ts';
import { warmUp } from '../runner/warm-up.ts';
import type { StepPlace } from './group-memory.ts';
import type { Link, RankPlace } from './link.ts';
import { createRankSampler } from './rank-sampler.ts';
import type { RankSampler } from './rank-sampler.ts';

/** What a rank computes without the others: stages of the forward pass up to a sum. */
interface Segment {
  record(rec: Recorder): void;
  readonly partial: Stage['partial'] | undefined;
}

interface PlannedSegment extends Segment {
  readonly plan?: Plan;
}

export interface RankParts {
  readonly device: Device;
  readonly decoder: Decoder;
  readonly workspace: DecoderWorkspace;
  readonly kv: KVCache;
  readonly limits: StepLimits;
  readonly place: RankPlace;
  readonly link: Link;
}

/**
 * One device of a split model. Executes steps one after the other, knowing words and not sequences, and meets the other ranks at its link. What the
 * device reads was copied out of the shared memory first: Dawn takes no shared arrays.
 */
export class Rank {
  readonly #parts: RankParts;
  readonly #input: StepInput;
  readonly #tensors: StepTensors;
  readonly #sampler: RankSampler | undefined;
  /** Sums, or the hidden state from the stage before. */
  readonly #hidden: Float32Array;
  readonly #plans = new Map<string, readonly PlannedSegment[]>();

  constructor(parts: RankParts) {
    const { device, decoder, limits, place, link } = parts;
    this.#parts = parts;
    this.#input = new StepInput(limits);
    this.#tensors = new StepTensors(device, decoder, limits);
    this.#sampler = parts.workspace.logits && createRankSampler(device, decoder, limits, place, link, this.#input, this.#tensors);
    this.#hidden = new Float32Array((limits.maxRunning + limits.prefillChunk) * decoder.shape.hidden);
  }

  /** Compiles every kernel. */
  async warmUp(): Promise<void> {
    await warmUp(this.#parts.device, { work: this.#work(), sizes: this.#sizes() });
  }

  /** The smallest decodes and a prompt. */
  *#work(): Generator<(rec: Recorder) => void> {
    for (const bucket of decodeBuckets(this.#parts.limits.maxRunning).slice(0, 2)) yield* this.#decodes(bucket);
    for (const greedy of [true, false]) yield this.#prefill(2 * this.#tensors.prefillTileRows, greedy);
    // Kernels differ with the rows: one plan of each size makes the bind groups that the others share.
    for (const bucket of decodeBuckets(this.#parts.limits.maxRunning)) this.#planned(this.#tensors.decodeShape(bucket, 1));
  }

  /** The largest prompt, then decodes of all sizes. */
  *#sizes(): Generator<(rec: Recorder) => void> {
    const { maxRunning, prefillChunk, promptsApart } = this.#parts.limits;
    yield this.#prefill(maxRunning + prefillChunk, true);
    // As ModelRunner's.
    for (const rows of promptsApart ? [...decodeBuckets(maxRunning), maxRunning + prefillChunk] : [])
      yield this.#prefill(rows + 1, true, rows);
    for (const bucket of [...decodeBuckets(this.#parts.limits.maxRunning)].reverse()) yield* this.#decodes(bucket);
  }

  #prefill(wanted: number, greedy: boolean, answers = 0): (rec: Recorder) => void {
    const shape = this.#tensors.prefillShape(wanted, 1, answers);
    return (rec) => this.#recordAll(rec, shape, greedy);
  }

  *#decodes(bucket: number): Generator<(rec: Recorder) => void> {
    const tensors = this.#tensors;
    for (const parts of new Set([tensors.maxParts(bucket), 1])) {
      for (const greedy of [true, false]) yield (rec) => this.#recordAll(rec, tensors.decodeShape(bucket, parts), greedy);
    }
  }

  /** A step as if this rank were alone: prompts as they are recorded, decodes as they are replayed. */
  #recordAll(rec: Recorder, shape: StepShape, greedy: boolean): void {
    const { workspace } = this.#parts;
    const segments: readonly PlannedSegment[] = shape.gather || rec.mode === 'dry' ? this.#segments(shape) : this.#planned(shape);
    for (const { record, plan } of segments) {
      if (plan) rec.replay(plan);
      else record(rec);
    }
    if (workspace.logits) this.#sampler!.record(rec, shape.logitRows, workspace.logits, greedy);
  }

  /** Executes one step; the first rank of the last stage leaves the tokens in its place. Rejects with EngineError('device_lost') when another rank failed. */
  async step(place: StepPlace): Promise<void> {
    const { device, workspace, link, place: own } = this.#parts;
    const input = this.#input;
    input.assign(place.input);
    const given = this.#growPages(input.get('pages'), input.get('windowPages'));
    if (own.stage === 0) {
      await link.completed(input.get('after'));
      this.#resolve(input);
    }
    const shape = this.#tensors.upload(input);
    const size = shape.rows * workspace.hidden.shape[1]!;
    if (own.stage > 0) {
      const { floats } = await link.received(place, input.get('step'));
      this.#hidden.set(floats.subarray(0, size));
      device.write(workspace.hidden, this.#hidden.subarray(0, size));
    }
    const last = await this.#forward(shape);
    await given;
    if (own.stage < own.ppSize - 1) await this.#handOver(place, last, size);
    else await this.#sample(last, input, place);
  }

  /** Room for the pages a step uses; the promise rejects when the device had none. */
  #growPages(pages: number, windows: number): Promise<void> | undefined {
    const { device, kv } = this.#parts;
    if (hasPages(kv, pages, windows)) return undefined;
    const { made: moved, given } = allocateNow(device, 'more KV pages', () => growKVCache(device, kv, pages, windows));
    if (moved) this.#plans.clear();
    return given;
  }

  /** Runs the segments; returns the recorder of the last one if that is not submitted yet, because no sum ends it. */
  async #forward(shape: StepShape): Promise<Recorder | undefined> {
    const { device, link } = this.#parts;
    // A shape with prompts in it is seldom the same twice.
    const segments: readonly PlannedSegment[] = shape.gather ? this.#segments(shape) : this.#planned(shape);
    for (const { record, partial, plan } of segments) {
      const rec = device.record('chat stage');
      if (plan) rec.replay(plan);
      else record(rec);
      if (!partial) return rec;
      const { tensor, rows } = partial;
      if (rows === 0) {
        rec.submit();
        continue;
      }
      const size = rows * tensor.shape[1]!;
      const readback = rec.readback(tensor, size * 4);
      rec.submit();
      await readback.into(link.mine.bytes);
      await link.allReduce(size, this.#hidden);
      device.write(tensor, this.#hidden.subarray(0, size));
    }
    return undefined;
  }

  /** Gives the hidden state to the next stage: from the device, or the sum that all ranks of this one have. */
  async #handOver(place: StepPlace, rec: Recorder | undefined, size: number): Promise<void> {
    const { workspace, link, place: own } = this.#parts;
    if (own.rank > 0) return;
    const target = link.handOver(place);
    if (rec) {
      const readback = rec.readback(workspace.hidden, size * 4);
      rec.submit();
      await readback.into(target.bytes);
    } else target.floats.set(this.#hidden.subarray(0, size));
    link.handedOver();
  }

  async #sample(rec: Recorder | undefined, input: StepInput, place: StepPlace): Promise<void> {
    const { workspace, link, place: own } = this.#parts;
    const sampled = input.get('sampled');
    if (sampled > 0) await this.#sampler!.finish(rec!, input, workspace.logits!, place);
    else await rec!.submit().finished();
    if (own.rank > 0) return;
    for (let row = 0; row < sampled; row++) {
      link.lastTokens[readSlot(input.sampling, row)] = place.tokens[row]!;
    }
    link.complete();
  }

  /** Fills the tokens in that earlier steps sampled. */
  #resolve(input: StepInput): void {
    const { tokens } = input;
    const { lastTokens } = this.#parts.link;
    for (let row = 0, rows = input.get('rows'); row < rows; row++)
      if (tokens[row]! >= FROM_DEVICE) tokens[row] = lastTokens[tokens[row]! - FROM_DEVICE]!;
  }

  /** Stages between sums; a rank that is alone in its stage has no sums. */
  #segments(shape: StepShape): readonly Segment[] {
    const { workspace, kv, place } = this.#parts;
    const stages = workspace.stages(this.#tensors.forwardInput(shape, this.#tensors.tokens(shape)), kv);
    if (place.tpSize > 1) return stages.map(({ record, partial }) => ({ record, partial }));
    return [{ record: (rec) => stages.forEach((stage) => stage.record(rec)), partial: undefined }];
  }

  /** The segments of a decode batch's shape, each with its plan, captured when first used. */
  #planned(shape: StepShape): readonly PlannedSegment[] {
    const key = `decode ${shape.rows}, parts ${shape.parts}`;
    let planned = this.#plans.get(key);
    if (!planned) {
      const { device } = this.#parts;
      planned = this.#segments(shape).map((segment, i) => ({ ...segment, plan: device.capture(`${key}, segment ${i}`, segment.record) }));
      this.#plans.set(key, planned);
    }
    return planned;
  }
}
