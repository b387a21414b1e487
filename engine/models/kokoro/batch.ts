/** Batches of sentences in one workspace: where each lies, and the tables that kernels read. */
import { assert } from '../../errors.ts';
import type { Device } from '../../gpu/device.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { denseTileRows } from '../../ops/dense-attention.ts';
import type { Tiles } from '../../ops/dense-attention.ts';
import { spanRows } from '../../ops/row-spans.ts';
import type { RowSpans, SpanRows } from '../../ops/row-spans.ts';
import { ceilDiv } from '../../util/math.ts';
import type { KokoroConfig } from './config.ts';
import { MAX_SENTENCES } from './weights.ts';
import type { Styles } from './weights.ts';

/** Input tensors of the text side of a batch. */
export interface TextInput {
  /** [maxTokens] u32. */
  readonly ids: Tensor;
  /** [maxTokens] u32: position of each token in its sentence. */
  readonly positions: Tensor;
  /** [MAX_SENTENCES, 4] u32. */
  readonly tokenSpans: Tensor;
  /** [tiles, 4] u32. */
  readonly tiles: Tensor;
}

/** Input tensors of the frames of a batch. */
export interface FrameInput {
  /** [maxFrames] u32: the token of each frame. */
  readonly index: Tensor;
  /** [MAX_SENTENCES, 4] u32. */
  readonly frameSpans: Tensor;
}

/** A sentence's input to the text side. */
export interface TextSentence {
  /** Phoneme ids, with the zeros at both ends. */
  readonly ids: Uint32Array;
  /** The two halves of a voice's style vector. */
  readonly decoder: Float32Array;
  readonly prosody: Float32Array;
}

/** Sentences whose durations are computed together. */
export interface TextBatch {
  /** A row for each token. */
  readonly tokens: SpanRows;
  /** The first row of each sentence. */
  readonly first: readonly number[];
  readonly over: Tiles;
}

/** A sentence whose durations are known. */
export interface FrameSentence {
  /** The token of each frame, numbered from the sentence's first. */
  readonly index: Uint32Array;
  /** u32 key of the noise, and the number of its first sample. */
  readonly seed: number;
  readonly firstSample: number;
}

/** Consecutive sentences of a text batch that are decoded together. */
export interface FrameBatch {
  /** A row for each frame. */
  readonly frames: SpanRows;
  /** The first frame of each sentence. */
  readonly first: readonly number[];
  /** Index in the text batch of this batch's first sentence. */
  readonly from: number;
}

/** Allocates input tensors for at most `tokens` tokens. */
export function createTextInput(device: Device, { bert }: KokoroConfig, tokens: number): TextInput {
  const tiles = ceilDiv(tokens, denseTileRows(device.caps, bert.hidden / bert.heads)) + MAX_SENTENCES;
  return {
    ids: device.tensor('phoneme ids', 'u32', [tokens]),
    positions: device.tensor('phoneme positions', 'u32', [tokens]),
    tokenSpans: device.tensor('token spans', 'u32', [MAX_SENTENCES, 4]),
    tiles: device.tensor('phoneme tiles', 'u32', [tiles, 4]),
  };
}

/** Allocates input tensors for at most `frames` token frames. */
export function createFrameInput(device: Device, frames: number): FrameInput {
  return {
    index: device.tensor('frame index', 'u32', [frames]),
    frameSpans: device.tensor('frame spans', 'u32', [MAX_SENTENCES, 4]),
  };
}

/** The tensors of a workspace that a text batch is written to. */
export interface TextTarget {
  readonly textInput: TextInput;
  readonly prosodyStyles: Styles;
  readonly decoderStyles: Styles;
}

/** Lays sentences out one after the other and writes their input tensors and voices. */
export function writeText(device: Device, { bert }: KokoroConfig, target: TextTarget, sentences: readonly TextSentence[]): TextBatch {
  const { textInput: input, prosodyStyles, decoderStyles } = target;
  const first = starts(sentences.map(({ ids }) => ids.length));
  const rows = denseTileRows(device.caps, bert.hidden / bert.heads);
  const tiles = sentences.flatMap(({ ids }, s) =>
    Array.from({ length: ceilDiv(ids.length, rows) }, (_, i) => [first[s]!, ids.length, first[s]! + i * rows, Math.min(rows, ids.length - i * rows)]),
  ); // prettier-ignore
  device.write(input.ids, joined(sentences.map(({ ids }) => ids)));
  device.write(input.positions, joined(sentences.map(({ ids }) => ids.map((_, place) => place))));
  device.write(input.tiles, Uint32Array.from(tiles.flat()));
  sentences.forEach(({ decoder, prosody }, s) => {
    device.write(decoderStyles.input, decoder, s * decoder.length);
    device.write(prosodyStyles.input, prosody, s * prosody.length);
  });
  const spans = writeSpans(device, input.tokenSpans, first, sentences.map(({ ids }) => [ids.length, 0, 0])); // prettier-ignore
  return { tokens: spanRows(spans, 1), first, over: { tiles: input.tiles, count: tiles.length, rows } };
}

/**
 * Frames of a batch of sentences with these frame counts. One frame lies between two sentences, because a sentence has one more spectrum
 * than its frames make.
 */
export function batchFrames(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count + 1, -1);
}

/** Writes the input tensors for the frames of consecutive sentences of a text batch, beginning with number `from`. */
export function writeFrames(
  device: Device,
  input: FrameInput,
  text: TextBatch,
  from: number,
  sentences: readonly FrameSentence[],
): FrameBatch {
  const counts = sentences.map(({ index }) => index.length);
  const first = starts(counts, 1);
  const index = new Uint32Array(batchFrames(counts));
  sentences.forEach((sentence, s) =>
    index.set(
      sentence.index.map((token) => text.first[from + s]! + token),
      first[s],
    ),
  );
  device.write(input.index, index);
  const keyed = sentences.map(({ seed, firstSample }, s) => [counts[s]!, seed, firstSample] as const);
  const frames = spanRows(writeSpans(device, input.frameSpans, first, keyed), 1);
  return { frames, first, from };
}

function starts(counts: readonly number[], gap = 0): number[] {
  let at = -gap;
  return counts.map((_, i) => (at += gap + (i === 0 ? 0 : counts[i - 1]!)));
}

function joined(parts: readonly Uint32Array[]): Uint32Array<ArrayBuffer> {
  return Uint32Array.from(parts.flatMap((part) => [...part]));
}

/** Writes a table of spans: the first unit of each sentence, then its number of units and two more numbers. */
function writeSpans(
  device: Device,
  table: Tensor,
  first: readonly number[],
  rest: readonly (readonly [number, number, number] | readonly number[])[],
): RowSpans {
  assert(rest.length >= 1 && rest.length <= MAX_SENTENCES, `kokoro: ${rest.length} sentences in a batch of at most ${MAX_SENTENCES}`);
  device.write(table, Uint32Array.from(rest.flatMap((numbers, s) => [first[s]!, ...numbers])));
  const units = rest.map(([count = 0]) => count);
  return { table, count: units.length, longest: Math.max(...units), end: first.at(-1)! + units.at(-1)! };
}
