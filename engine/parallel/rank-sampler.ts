/** Sampling on the ranks of the last stage: on one rank over the whole vocabulary, or on several, each of which has the logits of a slice. */
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import type { Decoder } from '../models/decoder.ts';
import { LOGPROB_WORDS } from '../ops/logits.ts';
import { SAMPLING_ROW_WORDS } from '../ops/sampling-row.ts';
import { LogitProcessors } from '../runner/logit-processors.ts';
import { Sampler } from '../runner/sampler.ts';
import { StepInput } from '../runner/step-input.ts';
import type { StepLimits } from '../runner/step-input.ts';
import type { StepTensors } from '../runner/step-tensors.ts';
import type { Part } from './group-memory.ts';
import type { Link, RankPlace } from './link.ts';
import { vocabularySlice } from './shard-layout.ts';
import type { SamplingStep } from './shard-layout.ts';
import { ShardMerge, shardWords } from './shard-merge.ts';
import type { ShardLogprobs, ShardWords } from './shard-merge.ts';
import { ShardSampler } from './shard-sampler.ts';

/** Memory for a step's results. */
export interface StepOutput {
  /** One token per sampled row. */
  readonly tokens: Uint32Array;
  /** LOGPROB_WORDS words per reported row. */
  readonly logprobs: Part;
}

export interface RankSampler {
  /** Makes room for logit processing, which most requests do without. Throws EngineError('out_of_memory') when the device has none. */
  reserve(): Promise<void>;
  /** Appends sampling to a recorder that has recorded the logits, submits it and waits for the tokens. */
  finish(rec: Recorder, input: StepInput, logits: Tensor, output: StepOutput): Promise<void>;
  /** Appends the sampling of a step without logit processors, for warming up. */
  record(rec: Recorder, rows: number, logits: Tensor, greedy: boolean): void;
}

/** Makes the sampler of a rank of the last stage. */
export function createRankSampler(
  device: Device,
  decoder: Decoder,
  limits: StepLimits,
  place: RankPlace,
  link: Link,
  input: StepInput,
  tensors: StepTensors,
): RankSampler {
  const processors = new LogitProcessors(device, decoder.tokens, limits.maxRunning, input);
  const parts = { device, limits, processors, tensors };
  return place.tpSize === 1 ? new WholeSampler(parts) : new SlicedSampler(parts, place, link);
}

/** Device bytes of the sampler of a rank of the last stage, those that `reserve` allocates included. */
export function rankSamplerBytes(device: Device, { tokens }: Pick<Decoder, 'tokens'>, limits: StepLimits, place: RankPlace): number {
  const processors = new LogitProcessors(device, tokens, limits.maxRunning, new StepInput(limits));
  const own = device.measure(() => void (place.tpSize === 1 ? wholeSampler(device, limits) : sliceSampler(device, limits, place)));
  return own + processors.bytes;
}

/** Most rows with logits in one step. */
const logitRows = ({ maxRunning, draftRows }: StepLimits): number => maxRunning + draftRows;

function wholeSampler(device: Device, limits: StepLimits): Sampler {
  return new Sampler(device, limits.vocabulary, limits.maxRunning, logitRows(limits));
}

function sliceSampler(device: Device, limits: StepLimits, { rank, tpSize }: RankPlace): ShardSampler {
  return new ShardSampler(device, vocabularySlice(limits.vocabulary, rank, tpSize), logitRows(limits));
}

interface SamplerParts {
  readonly device: Device;
  readonly limits: StepLimits;
  readonly processors: LogitProcessors;
  /** Device tensors of the steps, which hold the sampling settings. */
  readonly tensors: StepTensors;
}

class WholeSampler implements RankSampler {
  readonly #sampler: Sampler;
  readonly #processors: LogitProcessors;
  readonly #tensors: StepTensors;

  constructor({ device, limits, processors, tensors }: SamplerParts) {
    this.#sampler = wholeSampler(device, limits);
    this.#processors = processors;
    this.#tensors = tensors;
  }

  reserve(): Promise<void> {
    return this.#processors.reserve();
  }

  record(rec: Recorder, rows: number, logits: Tensor, greedy: boolean): void {
    this.#sampler.record(rec, { logits, settings: this.#tensors.settings({ gather: true }), rows, greedy });
  }

  async finish(rec: Recorder, input: StepInput, logits: Tensor, { tokens, logprobs }: StepOutput): Promise<void> {
    const rows = input.get('logitRows');
    const processed = input.get('processed') !== 0;
    if (processed) this.#processors.upload(input);
    const changed = processed ? this.#processors.process(rec, input, logits) : logits;
    const settings = this.#tensors.settings({ gather: input.get('gather') !== 0 });
    this.#sampler.record(rec, { logits: changed, settings, rows, greedy: input.get('greedy') !== 0 });
    const { sampled } = this.#sampler;
    const reported = processed ? this.#processors.finish(rec, input, logits, sampled) : undefined;
    const readback = rec.readback(sampled, input.get('sampled') * 4);
    rec.submit();
    await readback.into(new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength));
    await reported?.into(logprobs.bytes);
  }
}

class SlicedSampler implements RankSampler {
  readonly #device: Device;
  readonly #sampler: ShardSampler;
  readonly #merge: ShardMerge;
  readonly #processors: LogitProcessors;
  readonly #link: Link;
  readonly #isFirst: boolean;

  constructor({ device, limits, processors }: SamplerParts, place: RankPlace, link: Link) {
    const { rank, tpSize } = place;
    const slices = Array.from({ length: tpSize }, (_, i) => vocabularySlice(limits.vocabulary, i, tpSize));
    this.#device = device;
    this.#sampler = sliceSampler(device, limits, place);
    this.#merge = new ShardMerge(slices, logitRows(limits));
    this.#processors = processors;
    this.#link = link;
    this.#isFirst = rank === 0;
  }

  reserve(): Promise<void> {
    return this.#processors.reserve();
  }

  record(rec: Recorder, rows: number, logits: Tensor, greedy: boolean): void {
    const settings = new Uint32Array(rows * SAMPLING_ROW_WORDS);
    if (!greedy) new Float32Array(settings.buffer).fill(0.5);
    const step: SamplingStep = { rows, settings, reported: [], top: 0 };
    this.#sampler.prepare(step);
    this.#sampler.record(rec, step, logits, logits);
  }

  async finish(rec: Recorder, input: StepInput, logits: Tensor, output: StepOutput): Promise<void> {
    const processed = input.get('processed') !== 0;
    const reported = processed ? input.reported.subarray(0, input.get('reported')) : [];
    const step: SamplingStep = { rows: input.get('logitRows'), settings: input.sampling, reported, top: processed ? input.get('top') : 0 };
    if (processed) this.#processors.upload(input);
    const changed = processed ? this.#processors.process(rec, input, logits) : logits;
    const bytes = this.#sampler.prepare(step);
    this.#sampler.record(rec, step, changed, logits);
    const readback = rec.readback(this.#sampler.out, bytes);
    rec.submit();
    await readback.into(this.#link.mine.bytes);
    const parts = await this.#link.exchange();
    await this.#settle(step, parts, changed, logits, output);
    if (processed && input.get('penalized') !== 0) this.#processors.countDrawn(input, this.#merge.tokens);
    if (this.#isFirst) output.tokens.set(this.#merge.tokens.subarray(0, input.get('sampled')));
  }

  /** Merges all ranks' results into tokens and log-probabilities. Rows whose candidate lists were too short are exchanged as a whole. */
  async #settle(step: SamplingStep, parts: readonly Part[], changed: Tensor, logits: Tensor, output: StepOutput): Promise<void> {
    const merge = this.#merge;
    const unresolved = merge.merge(step, parts);
    // Copied, because further exchanges overwrite the parts.
    const kept = unresolved > 0 && step.reported.length > 0 ? parts.map(({ bytes }) => copyOf(bytes)) : parts;
    for (let i = 0; i < unresolved; i++) {
      const row = merge.unresolved[i]!;
      const rec = this.#device.record('whole row');
      const readback = rec.readback(this.#sampler.recordWhole(rec, row, changed, logits));
      rec.submit();
      await readback.into(this.#link.mine.bytes);
      merge.mergeWhole(step, row, await this.#link.exchange());
    }
    if (this.#isFirst && step.reported.length > 0) writeLogprobs(merge.logprobs(step, kept), output.logprobs);
  }
}

function copyOf(bytes: Uint8Array): ShardWords {
  return shardWords(bytes.slice().buffer);
}

/** Writes log-probabilities in the layout of logprobs.wgsl, with a log-sum-exp of 0 because they are normalised already. */
function writeLogprobs(rows: readonly ShardLogprobs[], { words, floats }: Part): void {
  rows.forEach(({ logprob, top }, i) => {
    const at = i * LOGPROB_WORDS;
    floats[at] = 0;
    floats[at + 1] = logprob;
    top.forEach((entry, j) => {
      words[at + 2 + 2 * j] = entry.token;
      floats[at + 3 + 2 * j] = entry.logprob;
    });
  });
}
