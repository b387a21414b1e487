/** Phoneme features for the decoder: embedding, convolutions with layer norm, a bidirectional LSTM (modules.py TextEncoder). */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { activate } from '../../ops/activation.ts';
import { conv1d, convInput } from '../../ops/conv.ts';
import type { ConvWeight } from '../../ops/conv.ts';
import { embedding } from '../../ops/embedding.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { lstm } from '../../ops/lstm.ts';
import { layerNorm } from '../../ops/norm.ts';
import { rowShape } from '../../ops/row-spans.ts';
import type { SpanRows } from '../../ops/row-spans.ts';
import type { KokoroConfig } from './config.ts';
import { loadConv, loadLstm } from './weights.ts';
import type { KokoroLoader, StyledLstm } from './weights.ts';

const EPS = 1e-5;

export interface TextEncoderWeights {
  readonly embedding: LinearWeight;
  readonly layers: readonly { readonly conv: ConvWeight; readonly gamma: Tensor; readonly beta: Tensor }[];
  readonly lstm: StyledLstm;
}

/** Loads `text_encoder.*`. */
export async function loadTextEncoder(
  loader: KokoroLoader,
  { symbols, hidden, layers, textKernel }: KokoroConfig,
): Promise<TextEncoderWeights> {
  const { weights } = loader;
  const shape = { outChannels: hidden, inChannels: hidden, kernel: textKernel };
  const stack: TextEncoderWeights['layers'][number][] = [];
  for (let i = 0; i < layers; i++) {
    stack.push({
      conv: await loadConv(loader, `text_encoder.cnn.${i}.0`, shape),
      gamma: await weights.tensor(`text_encoder.cnn.${i}.1.gamma`, [hidden]),
      beta: await weights.tensor(`text_encoder.cnn.${i}.1.beta`, [hidden]),
    });
  }
  return {
    embedding: await weights.table('text_encoder.embedding.weight', symbols, hidden),
    layers: stack,
    lstm: await loadLstm(loader, 'text_encoder.lstm', hidden, hidden / 2, false),
  };
}

export interface TextEncoderWorkspace {
  readonly x: Tensor;
  /** Copy of x that the convolutions read. */
  readonly texels: Tensor;
  readonly mid: Tensor;
  /** The result, t_en [tokens, hidden]. */
  readonly encoded: Tensor;
}

/** Allocates activations for at most `tokens` tokens. */
export function createTextEncoderWorkspace(device: Device, hidden: number, tokens: number): TextEncoderWorkspace {
  const tensor = (label: string): Tensor => device.tensor(`text encoder ${label}`, 'f32', [tokens, hidden]);
  return {
    x: tensor('x'),
    texels: convInput(device, 'text encoder texels', tokens * hidden),
    mid: tensor('mid'),
    encoded: tensor('encoded'),
  };
}

/** Computes ws.encoded [tokens, hidden] from ids [tokens] u32; `gates` is LSTM scratch [tokens, 4 hidden]. */
export function textEncoder(
  rec: Recorder,
  w: TextEncoderWeights,
  ws: TextEncoderWorkspace,
  { ids, gates, tokens }: { readonly ids: Tensor; readonly gates: Tensor; readonly tokens: SpanRows },
): void {
  const { x, mid } = ws;
  const { end } = rowShape(tokens);
  embedding(rec, { ids, table: w.embedding, out: x, rows: end });
  for (const { conv, gamma, beta } of w.layers) {
    conv1d(rec, { x, texels: ws.texels, weight: conv, out: mid, padding: (conv.taps - 1) / 2, rows: tokens });
    layerNorm(rec, { x: mid, weight: gamma, bias: beta, out: ws.encoded, eps: EPS, rows: end });
    activate(rec, { x: ws.encoded, out: x, activation: 'leaky_relu', count: end * x.shape[1]! });
  }
  lstm(rec, { x, weight: w.lstm.lstm, out: ws.encoded, inputs: gates, rows: tokens });
}
