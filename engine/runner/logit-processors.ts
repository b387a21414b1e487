import type { Device } from '../gpu/device.ts';
import { allocateNow } from '../gpu/memory.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Readback } from '../gpu/staging.ts';
import type { Tensor } from '../gpu/tensor.ts';
import {
  LOGPROB_WORDS,
  NO_SLOT,
  PENALTY_WORDS,
  biasLogits,
  countTokens,
  initialCounts,
  logprobs,
  maskLogits,
  penalizeLogits,
} from '../ops/logits.ts';
import type { SampledRow } from '../scheduler/batch.ts';
import { ceilDiv, sizeOf } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import { BIAS_WORDS, FRESH_HEAD } from './step-input.ts';
import type { StepInput } from './step-input.ts';

/** Log-probabilities of one sampled token, from the model's unmodified logits. */
export interface TokenLogprobs {
  readonly logprob: number;
  /** Alternatives, best first. */
  readonly top: readonly { readonly token: number; readonly logprob: number }[];
}

interface Buffers {
  readonly processed: Tensor;
  readonly masked: Tensor;
  readonly masks: Tensor;
  readonly biases: Tensor;
  readonly penalties: Tensor;
  readonly slots: Tensor;
  readonly counts: Tensor;
  readonly logprobRows: Tensor;
  readonly logprobs: Tensor;
}

/**
 * Grammar masks, biases, penalties and log-probabilities of a step, over the tokens whose logits this device has. Their buffers are
 * allocated when any of them is first asked for, and kept.
 */
export class LogitProcessors {
  readonly #device: Device;
  readonly #tokens: Range;
  readonly #slots: number;
  readonly #limits: { readonly rows: number; readonly biases: number };
  #biasCount = 0;
  #buffers: Buffers | undefined;
  /** Resolves once the device has given the buffers. */
  #given: Promise<void> | undefined;

  /** `tokens` must start at a multiple of 32; `slots` = most running sequences; `input` = any StepInput, whose arrays give the sizes. */
  constructor(device: Device, tokens: Range, slots: number, input: StepInput) {
    this.#device = device;
    this.#tokens = tokens;
    this.#slots = slots;
    this.#limits = { rows: input.masked.length, biases: input.biases.length / BIAS_WORDS };
  }

  /** Device bytes of the buffers. */
  get bytes(): number {
    return this.#device.measure(() => void this.#allocate());
  }

  /**
   * Allocates the buffers, if that was not done. Throws EngineError('out_of_memory') when the device cannot give them; the next call tries
   * again.
   */
  reserve(): Promise<void> {
    if (this.#given) return this.#given;
    const { made, given } = allocateNow(this.#device, 'logit processing', () => this.#allocate());
    this.#buffers = made;
    this.#given = given.catch((error: unknown) => {
      [this.#buffers, this.#given] = [undefined, undefined];
      // The device may have given some of them.
      this.#device.destroy(...Object.values(made));
      throw error;
    });
    return this.#given;
  }

  /** Uploads the masks, biases and penalties of a step's rows. */
  upload(input: StepInput): void {
    const buffers = (this.#buffers ??= this.#allocate());
    const rows = input.get('logitRows');
    if (input.get('penalized') !== 0) {
      this.#device.write(buffers.penalties, input.penalties.subarray(0, rows * PENALTY_WORDS));
      this.#device.write(buffers.slots, input.countedSlots.subarray(0, rows));
      this.#startCounts(buffers, input);
    }
    this.#uploadMasks(buffers, input, rows);
    this.#uploadBiases(buffers, input);
    const reported = input.get('reported');
    if (reported > 0) this.#device.write(buffers.logprobRows, input.reported.subarray(0, reported));
  }

  /** Appends the processing; returns the logits to sample from. */
  process(rec: Recorder, input: StepInput, logits: Tensor): Tensor {
    if (input.get('changed') === 0) return logits;
    const rows = input.get('logitRows');
    const { processed, masked, masks, biases, penalties, counts } = this.#buffers!;
    maskLogits(rec, { logits, masked, masks, out: processed, rows, vocabulary: sizeOf(this.#tokens) });
    if (this.#biasCount > 0) biasLogits(rec, { entries: biases, logits: processed, count: this.#biasCount });
    if (input.get('penalized') !== 0) penalizeLogits(rec, { penalties, counts, logits: processed, rows });
    return processed;
  }

  /** Appends what follows sampling: counting the tokens, and the log-probabilities of the rows that report them. */
  finish(rec: Recorder, input: StepInput, logits: Tensor, sampled: Tensor): Readback | undefined {
    const { slots, counts, logprobRows, logprobs: out } = this.#buffers!;
    if (input.get('penalized') !== 0) countTokens(rec, { slots, sampled, counts, rows: input.get('sampled') });
    const count = input.get('reported');
    if (count === 0) return undefined;
    logprobs(rec, { logits, indices: logprobRows, sampled, out, count, vocabulary: sizeOf(this.#tokens), top: input.get('top') });
    return rec.readback(out, count * LOGPROB_WORDS * 4);
  }

  /** Counts a step's tokens that the host sampled from this device's slice and others; `sampled` has one per row. */
  countDrawn(input: StepInput, sampled: Uint32Array): void {
    const { from, to } = this.#tokens;
    const rows = input.get('sampled');
    const isMine = (row: number): boolean => sampled[row]! >= from && sampled[row]! < to;
    const { slots, counts } = this.#buffers!;
    const drawn = this.#device.scratch('drawn tokens', 'u32', this.#limits.rows);
    this.#device.write(slots, input.countedSlots.subarray(0, rows).map((slot, row) => (isMine(row) ? slot : NO_SLOT))); // prettier-ignore
    this.#device.write(drawn, sampled.subarray(0, rows).map((token, row) => (isMine(row) ? token - from : 0))); // prettier-ignore
    const rec = this.#device.record('count tokens');
    countTokens(rec, { slots, sampled: drawn, counts, rows });
    rec.submit();
  }

  #allocate(): Buffers {
    const tensor = this.#device.tensor.bind(this.#device);
    const vocabulary = sizeOf(this.#tokens);
    const { rows, biases } = this.#limits;
    return {
      processed: tensor('processed logits', 'f32', [rows, vocabulary]),
      masked: tensor('masked rows', 'u32', [rows]),
      masks: tensor('grammar masks', 'u32', [rows, ceilDiv(vocabulary, 32)]),
      biases: tensor('logit bias', 'u32', [biases, BIAS_WORDS]),
      penalties: tensor('penalties', 'u32', [rows, PENALTY_WORDS]),
      slots: tensor('counted slots', 'u32', [rows]),
      counts: tensor('token counts', 'u32', [this.#slots, vocabulary]),
      logprobRows: tensor('logprob rows', 'u32', [rows]),
      logprobs: tensor('logprobs', 'u32', [rows, LOGPROB_WORDS]),
    };
  }

  #uploadMasks({ masked, masks }: Buffers, input: StepInput, rows: number): void {
    this.#device.write(masked, input.masked.subarray(0, rows));
    const words = ceilDiv(sizeOf(this.#tokens), 32);
    for (let row = 0; row < rows; row++) {
      if (input.masked[row] === 0) continue;
      const at = row * input.maskWords + this.#tokens.from / 32;
      this.#device.write(masks, input.masks.subarray(at, at + words), row * words);
    }
  }

  #uploadBiases({ biases }: Buffers, input: StepInput): void {
    const { from, to } = this.#tokens;
    const entries = new Uint32Array(input.get('biases') * BIAS_WORDS);
    let at = 0;
    for (let i = 0; i < entries.length; i += BIAS_WORDS) {
      const token = input.biases[i + 1]!;
      if (token < from || token >= to) continue;
      entries.set([input.biases[i]!, token - from, input.biases[i + 2]!], at);
      at += BIAS_WORDS;
    }
    this.#biasCount = at / BIAS_WORDS;
    if (at > 0) this.#device.write(biases, entries.subarray(0, at));
  }

  #startCounts({ counts }: Buffers, input: StepInput): void {
    const { from, to } = this.#tokens;
    const fresh = input.fresh.subarray(0, input.get('freshWords'));
    const mine = (tokens: Uint32Array): Uint32Array => tokens.filter((token) => token >= from && token < to).map((token) => token - from);
    const vocabulary = to - from;
    for (let at = 0; at < fresh.length;) {
      const [slot = 0, prompt = 0, answer = 0] = fresh.subarray(at, at + FRESH_HEAD);
      at += FRESH_HEAD;
      const tokens = fresh.subarray(at, at + prompt + answer);
      at += prompt + answer;
      const initial = initialCounts(vocabulary, mine(tokens.subarray(0, prompt)), mine(tokens.subarray(prompt)));
      this.#device.write(counts, initial, slot * vocabulary);
    }
  }
}

/** Parses the readback of finish(), by row of batch.sampled. `reported` = the rows that asked, in order. */
export function parseLogprobs(
  reported: Uint32Array,
  sampled: readonly SampledRow[],
  data: ArrayBuffer,
  vocabulary: number,
): readonly (TokenLogprobs | undefined)[] {
  const words = new Uint32Array(data);
  const floats = new Float32Array(data);
  const byRow: (TokenLogprobs | undefined)[] = sampled.map(() => undefined);
  reported.forEach((row, i) => {
    const at = i * LOGPROB_WORDS;
    const logSumExp = floats[at]!;
    const count = Math.min(sampled[row]!.sequence.sampling.logits?.logprobs ?? 0, vocabulary);
    const top = Array.from({ length: count }, (_, j) => ({
      token: words[at + 2 + 2 * j]!,
      logprob: floats[at + 3 + 2 * j]! - logSumExp,
    }));
    byRow[row] = { logprob: floats[at + 1]! - logSumExp, top };
  });
  return byRow;
}
