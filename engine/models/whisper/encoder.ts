import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { conv1d } from '../../ops/conv.ts';
import { denseAttention, reserveDense } from '../../ops/dense-attention.ts';
import { linear, reserveFactors } from '../../ops/linear.ts';
import { layerNorm } from '../../ops/norm.ts';
import { createLogMelWorkspace, logMel, melRows } from '../../ops/spectral.ts';
import type { LogMel, LogMelWorkspace } from '../../ops/spectral.ts';
import { alignUp } from '../../util/math.ts';
import type { WhisperConfig } from './config.ts';
import type { FeedForwardWeights, WhisperWeights } from './weights.ts';

/** torch.nn.LayerNorm's default, which Whisper keeps. */
export const LAYER_NORM_EPS = 1e-5;

/** Activations of the encoder for one window: L mel frames, S = L / 2 positions, C channels. */
export interface EncoderWorkspace {
  /** [L + taps - 1, hop]: samples, laid out by melInput. */
  readonly samples: Tensor;
  readonly mel: LogMelWorkspace;
  /** [L, mels padded to 4]. */
  readonly features: Tensor;
  /** [L, C]. */
  readonly stem: Tensor;
  /** [S, C]: the residual stream. */
  readonly hidden: Tensor;
  /** [S, C]: the stream between attention and feed-forward. */
  readonly middle: Tensor;
  readonly normed: Tensor;
  /** [S, 3 C]. */
  readonly qkv: Tensor;
  readonly attended: Tensor;
  /** [S, ffn]. */
  readonly ffn: Tensor;
}

/** Allocates the encoder's activations for a window of up to `L` mel frames. */
export function createEncoderWorkspace(device: Device, config: WhisperConfig, L = config.frames): EncoderWorkspace {
  const { channels: C, mel } = config;
  const S = L / 2;
  const f32 = (name: string, shape: readonly number[]): Tensor => device.tensor(`encoder ${name}`, 'f32', shape);
  const { heads } = config.encoder;
  reserveFactors(device);
  reserveDense(device, { rows: S, heads, headDim: C / heads });
  return {
    samples: f32('samples', [melRows(mel, L), mel.hop]),
    mel: createLogMelWorkspace(device, mel, L),
    features: f32('features', [L, alignUp(mel.mels, 4)]),
    stem: f32('stem', [L, C]),
    hidden: f32('hidden', [S, C]),
    middle: f32('middle', [S, C]),
    normed: f32('normed', [S, C]),
    qkv: f32('qkv', [S, 3 * C]),
    attended: f32('attended', [S, C]),
    ffn: f32('ffn', [S, config.encoder.ffn]),
  };
}

export interface EncoderArgs {
  readonly config: WhisperConfig;
  readonly weights: WhisperWeights;
  readonly logMel: LogMel;
  readonly workspace: EncoderWorkspace;
  /** Mel frames to encode, an even number. */
  readonly frames: number;
  /** How many of them hold audio: the checkpoint's denoising applies to these. Absent = no denoising. */
  readonly heard?: number;
}

/** Encodes the samples in workspace.samples; leaves the encoder output [S, C] in workspace.normed and returns S. */
export function encodeAudio(rec: Recorder, args: EncoderArgs): number {
  const { workspace: ws, frames, heard } = args;
  const { denoise: decibels } = args.config.windows;
  const denoise = heard !== undefined && decibels !== undefined ? { heard, decibels } : undefined;
  logMel(rec, { logMel: args.logMel, workspace: ws.mel, samples: ws.samples, out: ws.features, frames, denoise });
  const rows = encoderStem(rec, args);
  for (let i = 0; i < args.weights.encoder.layers.length; i++) encoderLayer(rec, args, i, rows);
  layerNorm(rec, { x: ws.hidden, ...args.weights.encoder.norm, out: ws.normed, eps: LAYER_NORM_EPS, rows });
  return rows;
}

/** features -> hidden: two convolutions, the second of stride 2, plus position embeddings; returns the number of positions. */
export function encoderStem(rec: Recorder, { weights: { encoder }, workspace: ws, frames }: EncoderArgs): number {
  conv1d(rec, { x: ws.features, weight: encoder.conv1, out: ws.stem, padding: 1, activation: 'gelu', rows: frames });
  const second = { x: ws.stem, weight: encoder.conv2, out: ws.hidden, stride: 2, padding: 1, rows: frames } as const;
  return conv1d(rec, { ...second, activation: 'gelu', residual: encoder.positions });
}

/** One pre-norm layer: hidden -> hidden. */
export function encoderLayer(rec: Recorder, { config, weights, workspace: ws }: EncoderArgs, index: number, rows: number): void {
  const { self, ffn } = weights.encoder.layers[index]!;
  const { heads } = config.encoder;
  const C = config.channels;
  layerNorm(rec, { x: ws.hidden, ...self.norm, out: ws.normed, eps: LAYER_NORM_EPS, rows });
  linear(rec, { x: ws.normed, ...self.qkv, out: ws.qkv, rows, texels: true });
  const columns = (column: number): { tensor: Tensor; column: number } => ({ tensor: ws.qkv, column });
  const sizes = { heads, headDim: C / heads, over: { queries: rows, keys: rows } };
  denseAttention(rec, { q: columns(0), k: columns(C), v: columns(2 * C), out: ws.attended, ...sizes });
  linear(rec, { x: ws.attended, ...self.out, residual: ws.hidden, out: ws.middle, rows, texels: true });
  feedForward(rec, config, ffn, { x: ws.middle, normed: ws.normed, ffn: ws.ffn, out: ws.hidden, rows, texels: true });
}

/** Feed-forward half of a layer: out = x + down(act(up(norm(x)))). */
export function feedForward(
  rec: Recorder,
  { activation }: WhisperConfig,
  { norm, up, down }: FeedForwardWeights,
  { x, normed, ffn, out, rows, texels = false }: { x: Tensor; normed: Tensor; ffn: Tensor; out: Tensor; rows: number; texels?: boolean },
): void {
  layerNorm(rec, { x, ...norm, out: normed, eps: LAYER_NORM_EPS, rows });
  linear(rec, { x: normed, ...up, out: ffn, activation, rows, texels });
  linear(rec, { x: ffn, ...down, residual: x, out, rows, texels });
}

/**
 * Computes the cross-attention keys and values of every decoder layer from the encoder output, into rows [first, first + rows) of
 * out[layer] [>= first + rows, 2 C].
 */
export function encodeKeyValues(
  rec: Recorder,
  { weights, workspace: { normed, qkv } }: EncoderArgs,
  { out, first, rows }: { out: readonly Tensor[]; first: number; rows: number },
): void {
  weights.decoder.layers.forEach(({ cross }, i) => {
    const cache = out[i]!;
    const width = cache.shape[1]!;
    const made = cache.texture ? qkv.reshape([rows, width]) : cache.rows(first, first + rows);
    linear(rec, { x: normed, ...cross.keyValue, out: made, rows, texels: true });
    if (cache.texture) rec.fill(made, cache, (first * width) / 4);
  });
}
