import { EngineError } from '../../errors.ts';
import { describe } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';

/** ALBERT over phonemes ("plbert"). */
export interface AlbertConfig {
  readonly hidden: number;
  readonly heads: number;
  readonly intermediate: number;
  readonly positions: number;
  readonly layers: number;
  readonly embedding: number;
}

/** iSTFTNet vocoder. */
export interface GeneratorConfig {
  readonly channels: number;
  readonly upsampleRates: readonly number[];
  readonly upsampleKernels: readonly number[];
  readonly resblockKernels: readonly number[];
  readonly resblockDilations: readonly (readonly number[])[];
  readonly nFft: number;
  readonly hop: number;
}

/**
 * Sizes of a Kokoro checkpoint: Kokoro-82M's config.json, plus `decoder_dim`, `asr_res_dim` and `sample_rate` where a checkpoint differs.
 */
export interface KokoroConfig {
  readonly symbols: number;
  readonly hidden: number;
  readonly styleDim: number;
  /** Layers of the text encoder and of the duration encoder. */
  readonly layers: number;
  readonly maxDuration: number;
  readonly textKernel: number;
  readonly decoderDim: number;
  readonly asrResDim: number;
  readonly bert: AlbertConfig;
  readonly generator: GeneratorConfig;
  /** Sample rate of the audio, in Hz. */
  readonly sampleRate: number;
  /** Phoneme -> token id. */
  readonly vocab: ReadonlyMap<string, number>;
  /** Samples of one F0 frame; a token frame (what durations count) is two of them. */
  readonly samplesPerF0Frame: number;
}

function invalid(message: string): EngineError {
  return new EngineError('invalid_model', `config.json: ${message}`);
}

function object(json: Json, key: string): Json {
  const value = json[key];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(`${key} must be an object`);
  return value as Json;
}

interface SizeRange {
  readonly fallback?: number;
  /** The kernels need a multiple of this. */
  readonly step?: number;
  /** Upper bound, for sizes that no weight's shape confirms. */
  readonly most?: number;
}

/** Reads a positive integer within a range. */
function size(json: Json, key: string, { fallback, step = 1, most = Infinity }: SizeRange = {}): number {
  const value = json[key] ?? fallback;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1)
    throw invalid(`${key} is ${describe(value)}, expected a positive integer`);
  if (value > most) throw invalid(`${key} is ${value}, expected at most ${most}`);
  if (value % step !== 0) throw invalid(`${key} is ${value}, expected a multiple of ${step}`);
  return value;
}

function sizes(value: unknown, key: string): number[] {
  if (!Array.isArray(value) || value.length === 0 || !value.every((v) => Number.isInteger(v) && v > 0)) {
    throw invalid(`${key} must be a list of positive integers`);
  }
  return value as number[];
}

/** Reads config.json; throws EngineError('invalid_model') that names the field. */
export function parseKokoroConfig(json: unknown): KokoroConfig {
  if (typeof json !== 'object' || json === null) throw invalid('not an object');
  const root = json as Json;
  const bert = object(root, 'plbert');
  const generator = parseGenerator(object(root, 'istftnet'));
  const vocab = new Map(Object.entries(object(root, 'vocab')).map(([symbol, id]) => [symbol, id as number]));
  const symbols = size(root, 'n_token');
  for (const [symbol, id] of vocab) {
    if (!Number.isInteger(id) || id < 0 || id >= symbols)
      throw invalid(`vocab gives ${describe(symbol)} the id ${describe(id)}; n_token is ${symbols}`);
  }
  const hidden = size(bert, 'hidden_size', { step: 4 });
  const heads = size(bert, 'num_attention_heads');
  if ((hidden / heads) % 4 !== 0) throw invalid(`plbert: ${heads} heads of ${hidden} channels: a head must be a multiple of 4`);
  return {
    symbols,
    hidden: size(root, 'hidden_dim', { step: 16 }),
    styleDim: size(root, 'style_dim', { step: 4 }),
    layers: size(root, 'n_layer'),
    maxDuration: size(root, 'max_dur'),
    textKernel: size(root, 'text_encoder_kernel_size'),
    decoderDim: size(root, 'decoder_dim', { fallback: 1024, step: 4 }),
    asrResDim: size(root, 'asr_res_dim', { fallback: 64 }),
    bert: {
      hidden,
      heads,
      intermediate: size(bert, 'intermediate_size', { step: 4 }),
      positions: size(bert, 'max_position_embeddings'),
      layers: size(bert, 'num_hidden_layers'),
      embedding: size(bert, 'embedding_size', { fallback: 128, step: 4 }),
    },
    generator,
    sampleRate: size(root, 'sample_rate', { fallback: 24000, most: 192_000 }),
    vocab,
    samplesPerF0Frame: generator.upsampleRates.reduce((a, b) => a * b, 1) * generator.hop,
  };
}

function parseGenerator(json: Json): GeneratorConfig {
  const upsampleRates = sizes(json['upsample_rates'], 'upsample_rates');
  const upsampleKernels = sizes(json['upsample_kernel_sizes'], 'upsample_kernel_sizes');
  const resblockKernels = sizes(json['resblock_kernel_sizes'], 'resblock_kernel_sizes');
  const dilations = json['resblock_dilation_sizes'];
  if (!Array.isArray(dilations) || dilations.length !== resblockKernels.length) {
    throw invalid('resblock_dilation_sizes and resblock_kernel_sizes must have the same length');
  }
  if (upsampleKernels.length !== upsampleRates.length) throw invalid('upsample_kernel_sizes and upsample_rates must have the same length');
  upsampleKernels.forEach((kernel, i) => {
    if (kernel < upsampleRates[i]! || (kernel - upsampleRates[i]!) % 2 !== 0)
      throw invalid(`upsample kernel ${kernel} does not fit rate ${upsampleRates[i]}`);
  });
  return {
    channels: size(json, 'upsample_initial_channel', { step: 4 * 2 ** upsampleRates.length }),
    upsampleRates,
    upsampleKernels,
    resblockKernels,
    resblockDilations: dilations.map((d) => sizes(d, 'resblock_dilation_sizes')),
    nFft: size(json, 'gen_istft_n_fft', { step: 4 }),
    hop: size(json, 'gen_istft_hop_size'),
  };
}
