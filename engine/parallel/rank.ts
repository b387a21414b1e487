/** A rank: one device of a split model, which executes its share of every step. */
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
import { createRankSampler, rankSamplerBytes } from './rank-sampler.ts';
import type { RankSampler } from './rank-sampler.ts';

/** A part of the forward pass that a rank computes without the others: up to the next all-reduce. */
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
 * One device of a split model. It executes steps one after the other, from encoded inputs without any sequences, and communicates through its link. Data is copied
 * out of shared memory before it is uploaded, since Dawn does not accept shared arrays.
 */
export class Rank {
  readonly #parts: RankParts;
  readonly #input: StepInput;
  readonly #tensors: StepTensors;
  readonly #sampler: RankSampler | undefined;
  /** Staging memory for all-reduced sums, and for the hidden state from the previous stage. */
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

  /** Device bytes of the tensors that a rank makes itself; `samples`: it is one of the last stage. */
  static bytes(device: Device, decoder: Decoder, limits: StepLimits, place: RankPlace, samples: boolean): number {
    const own = device.measure(() => void new StepTensors(device, decoder, limits));
    return own + (samples ? rankSamplerBytes(device, decoder, limits, place) : 0);
  }

  /** As ModelRunner's; no effect on a rank that does not sample. */
  async reserveProcessing(): Promise<void> {
    await this.#sampler?.reserve();
  }

  /** Compiles every kernel that steps use. */
  async warmUp(): Promise<void> {
    await warmUp(this.#parts.device, { work: this.#work(), sizes: this.#sizes() });
  }

  /** Warm-up work: the smallest decode batches and a prompt. */
  *#work(): Generator<(rec: Recorder) => void> {
    for (const bucket of decodeBuckets(this.#parts.limits.maxRunning).slice(0, 2)) yield* this.#decodes(bucket);
    for (const greedy of [true, false]) yield this.#prefill(2 * this.#tensors.prefillTileRows, greedy);
    // Kernels depend on the number of rows: one plan per size makes the bind groups that the others share.
    for (const bucket of decodeBuckets(this.#parts.limits.maxRunning)) this.#planned(this.#tensors.decodeShape(bucket, 1));
  }

  /** Warm-up work of the other sizes, from the largest on: prompts, then decode batches. */
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

  /** Records a step as if this rank were alone. As in real steps, prompts are recorded and decodes replay a plan. */
  #recordAll(rec: Recorder, shape: StepShape, greedy: boolean): void {
    const { workspace } = this.#parts;
    const segments: readonly PlannedSegment[] = shape.gather || rec.mode === 'dry' ? this.#segments(shape) : this.#planned(shape);
    for (const { record, plan } of segments) {
      if (plan) rec.replay(plan);
      else record(rec);
    }
    if (workspace.logits) this.#sampler!.record(rec, shape.logitRows, workspace.logits, greedy);
  }

  /** Executes one step; the first rank of the last stage writes the tokens to `place`. Rejects with EngineError('device_lost') if another rank has failed. */
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

  /** Allocates the KV pages that a step uses, if needed; the promise rejects if the device is out of memory. */
  #growPages(pages: number, windows: number): Promise<void> | undefined {
    const { device, kv } = this.#parts;
    if (hasPages(kv, pages, windows)) return undefined;
    const { made: moved, given } = allocateNow(device, 'more KV pages', () => growKVCache(device, kv, pages, windows));
    if (moved) this.#plans.clear();
    return given;
  }

  /** Runs the segments with an all-reduce after each; returns the last one's recorder, not yet submitted, if it ends without one. */
  async #forward(shape: StepShape): Promise<Recorder | undefined> {
    const { device, link } = this.#parts;
    // Shapes with prompts seldom recur, so they are not captured as plans.
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

  /** The first rank hands the hidden state to the next stage: read from the device, or the last all-reduced sum, which is on the host already. */
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

  /** Replaces references to tokens of earlier steps by the tokens, which are known by now. */
  #resolve(input: StepInput): void {
    const { tokens } = input;
    const { lastTokens } = this.#parts.link;
    for (let row = 0, rows = input.get('rows'); row < rows; row++)
      if (tokens[row]! >= FROM_DEVICE) tokens[row] = lastTokens[tokens[row]! - FROM_DEVICE]!;
  }

  /** The forward pass cut at its all-reduces; a rank that is alone in its stage has none. */
  #segments(shape: StepShape): readonly Segment[] {
    const { workspace, kv, place } = this.#parts;
    const stages = workspace.stages(this.#tensors.forwardInput(shape, this.#tensors.tokens(shape)), kv);
    if (place.tpSize > 1) return stages.map(({ record, partial }) => ({ record, partial }));
    return [{ record: (rec) => stages.forEach((stage) => stage.record(rec)), partial: undefined }];
  }

  /** The segments of a decode shape with their plans, which are captured on first use. */
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
