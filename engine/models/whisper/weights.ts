import type { Tensor } from '../../gpu/tensor.ts';
import { convWeight } from '../../ops/conv.ts';
import type { ConvWeight } from '../../ops/conv.ts';
import { packLinear } from '../../ops/pack-linear.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { StackConfig, WhisperConfig } from './config.ts';

export interface Norm {
  /** [C] f32. */
  readonly weight: Tensor;
  readonly bias: Tensor;
}

export interface Projection {
  readonly weight: LinearWeight;
  /** [N] f32; Whisper's key projections have none, merged ones hold zeros in its place. */
  readonly bias: Tensor;
}

export interface SelfAttentionWeights {
  readonly norm: Norm;
  /** [3 C, C]: query, key, value. */
  readonly qkv: Projection;
  readonly out: Projection;
}

export interface CrossAttentionWeights {
  readonly norm: Norm;
  readonly query: Projection;
  /** [2 C, C]: key and value, applied to the encoder's output once per window. */
  readonly keyValue: Projection;
  readonly out: Projection;
}

export interface FeedForwardWeights {
  readonly norm: Norm;
  readonly up: Projection;
  readonly down: Projection;
}

export interface EncoderLayer {
  readonly self: SelfAttentionWeights;
  readonly ffn: FeedForwardWeights;
}

export interface DecoderLayer extends EncoderLayer {
  readonly cross: CrossAttentionWeights;
}

export interface WhisperWeights {
  readonly encoder: {
    readonly conv1: ConvWeight;
    readonly conv2: ConvWeight;
    /** [sourcePositions, C] f32. */
    readonly positions: Tensor;
    readonly layers: readonly EncoderLayer[];
    readonly norm: Norm;
  };
  readonly decoder: {
    /** [V, C]: the embedding table and, tied to it, the output projection. */
    readonly tokens: LinearWeight;
    /** [targetPositions, C] f32, packed for lookup. */
    readonly positions: LinearWeight;
    readonly layers: readonly DecoderLayer[];
    readonly norm: Norm;
  };
}

/** Loads every tensor of a WhisperForConditionalGeneration checkpoint; throws EngineError('invalid_model') on leftovers. */
export async function loadWhisper(loader: WeightLoader, config: WhisperConfig): Promise<WhisperWeights> {
  const { channels: C, vocabulary, mel } = config;
  const encoderLayers: EncoderLayer[] = [];
  for (let i = 0; i < config.encoder.layers; i++) {
    const prefix = `model.encoder.layers.${i}`;
    encoderLayers.push({ self: await selfAttention(loader, prefix, C), ffn: await feedForward(loader, prefix, C, config.encoder) });
  }
  const decoderLayers: DecoderLayer[] = [];
  for (let i = 0; i < config.decoder.layers; i++) {
    const prefix = `model.decoder.layers.${i}`;
    decoderLayers.push({
      self: await selfAttention(loader, prefix, C),
      cross: await crossAttention(loader, prefix, C),
      ffn: await feedForward(loader, prefix, C, config.decoder),
    });
  }
  const positions = await loader.data('model.decoder.embed_positions.weight', [config.targetPositions, C]);
  const weights: WhisperWeights = {
    encoder: {
      conv1: await conv(loader, 'model.encoder.conv1', C, mel.mels),
      conv2: await conv(loader, 'model.encoder.conv2', C, C),
      positions: await loader.tensor('model.encoder.embed_positions.weight', [config.sourcePositions, C]),
      layers: encoderLayers,
      norm: await norm(loader, 'model.encoder.layer_norm', C),
    },
    decoder: {
      tokens: await loader.table('model.decoder.embed_tokens.weight', vocabulary, C),
      positions: packLinear(loader.device, 'decoder positions', positions, config.targetPositions, C, 'f32'),
      layers: decoderLayers,
      norm: await norm(loader, 'model.decoder.layer_norm', C),
    },
  };
  // Tied to embed_tokens; some checkpoints store it twice.
  loader.skip('proj_out.weight');
  await loader.finish();
  return weights;
}

async function norm(loader: WeightLoader, name: string, channels: number): Promise<Norm> {
  return { weight: await loader.tensor(`${name}.weight`, [channels]), bias: await loader.tensor(`${name}.bias`, [channels]) };
}

async function projection(loader: WeightLoader, name: string, out: number, inputs: number): Promise<Projection> {
  return { weight: await loader.linear(`${name}.weight`, out, inputs), bias: await loader.tensor(`${name}.bias`, [out]) };
}

/** Loads projections of the same input as one matrix, e.g. ['k', 'v']. */
async function merged(loader: WeightLoader, prefix: string, names: readonly string[], channels: number): Promise<Projection> {
  const label = `${prefix}.${names.join('')}_proj`;
  const parts = names.map((name) => ({ name: `${prefix}.${name}_proj.weight`, outFeatures: channels }));
  const biases = names.map((name) => ({ name: name === 'k' ? undefined : `${prefix}.${name}_proj.bias`, size: channels }));
  return { weight: await loader.mergedLinear(label, parts, channels), bias: await loader.mergedVector(`${label}.bias`, biases) };
}

async function selfAttention(loader: WeightLoader, prefix: string, channels: number): Promise<SelfAttentionWeights> {
  return {
    norm: await norm(loader, `${prefix}.self_attn_layer_norm`, channels),
    qkv: await merged(loader, `${prefix}.self_attn`, ['q', 'k', 'v'], channels),
    out: await projection(loader, `${prefix}.self_attn.out_proj`, channels, channels),
  };
}

async function crossAttention(loader: WeightLoader, prefix: string, channels: number): Promise<CrossAttentionWeights> {
  return {
    norm: await norm(loader, `${prefix}.encoder_attn_layer_norm`, channels),
    query: await projection(loader, `${prefix}.encoder_attn.q_proj`, channels, channels),
    keyValue: await merged(loader, `${prefix}.encoder_attn`, ['k', 'v'], channels),
    out: await projection(loader, `${prefix}.encoder_attn.out_proj`, channels, channels),
  };
}

async function feedForward(loader: WeightLoader, prefix: string, channels: number, { ffn }: StackConfig): Promise<FeedForwardWeights> {
  return {
    norm: await norm(loader, `${prefix}.final_layer_norm`, channels),
    up: await projection(loader, `${prefix}.fc1`, ffn, channels),
    down: await projection(loader, `${prefix}.fc2`, channels, ffn),
  };
}

async function conv(loader: WeightLoader, name: string, outChannels: number, inChannels: number): Promise<ConvWeight> {
  const shape = { outChannels, inChannels, kernel: 3 };
  const matrix = await loader.conv(name, `${name}.weight`, shape);
  return convWeight(loader.device, name, matrix, shape, await loader.data(`${name}.bias`, [outChannels]));
}
