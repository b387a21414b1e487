/** Acoustic decoder: phoneme features, pitch and energy to the vocoder's input (istftnet.py Decoder without its generator). */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { conv1d } from '../../ops/conv.ts';
import type { ConvWeight } from '../../ops/conv.ts';
import { rowShape, scaleRows } from '../../ops/row-spans.ts';
import type { SequenceStyles, SpanRows } from '../../ops/row-spans.ts';
import { expandRows } from '../../ops/rows.ts';
import { alignUp } from '../../util/math.ts';
import { adainResBlock, loadAdainResBlock } from './blocks.ts';
import type { AdainResBlock, BlockScratch } from './blocks.ts';
import type { KokoroConfig } from './config.ts';
import { loadConv } from './weights.ts';
import type { KokoroLoader } from './weights.ts';

/** Decoder blocks; the last one doubles the length. */
const BLOCKS = 4;

export interface DecoderWeights {
  readonly f0: ConvWeight;
  readonly energy: ConvWeight;
  readonly asrRes: ConvWeight;
  readonly encode: AdainResBlock;
  readonly decode: readonly AdainResBlock[];
}

/** Loads `decoder.*` except the generator. */
export async function loadDecoder(loader: KokoroLoader, config: KokoroConfig): Promise<DecoderWeights> {
  const { hidden, decoderDim, asrResDim, generator } = config;
  const curve = { outChannels: 1, inChannels: 1, kernel: 3 };
  const dimIn = decoderDim + asrResDim + 2;
  const decode: AdainResBlock[] = [];
  for (let i = 0; i < BLOCKS; i++) {
    const last = i === BLOCKS - 1;
    decode.push(
      await loadAdainResBlock(loader, `decoder.decode.${i}`, { dimIn, dimOut: last ? generator.channels : decoderDim, upsample: last }),
    );
  }
  return {
    f0: await loadConv(loader, 'decoder.F0_conv', curve),
    energy: await loadConv(loader, 'decoder.N_conv', curve),
    asrRes: await loadConv(loader, 'decoder.asr_res.0', { outChannels: asrResDim, inChannels: hidden, kernel: 1 }),
    encode: await loadAdainResBlock(loader, 'decoder.encode', { dimIn: hidden + 2, dimOut: decoderDim }),
    decode,
  };
}

export interface DecoderWorkspace {
  /** [frames, hidden + 2 padded to 4]: phoneme features, F0, energy; the padding stays zero. */
  readonly input: Tensor;
  /** [frames, decoderDim + asrResDim + 2 padded to 4], twice: the last block's output, phoneme features, F0, energy. */
  readonly joined: readonly [Tensor, Tensor];
  /** [2 frames, generator channels]: the result. */
  readonly out: Tensor;
}

/** Allocates activations for at most `frames` token frames. */
export function createDecoderWorkspace(
  device: Device,
  { hidden, decoderDim, asrResDim, generator }: KokoroConfig,
  frames: number,
): DecoderWorkspace {
  const joined = (): Tensor => device.tensor('decoder joined', 'f32', [frames, alignUp(decoderDim + asrResDim + 2, 4)]);
  return {
    input: device.tensor('decoder input', 'f32', [frames, alignUp(hidden + 2, 4)]),
    joined: [joined(), joined()],
    out: device.tensor('decoder out', 'f32', [2 * frames, generator.channels]),
  };
}

export interface DecoderArgs {
  /** [tokens, hidden]: the text encoder's output, stretched by `index` [frames] u32. */
  readonly text: Tensor;
  readonly index: Tensor;
  /** [2 frames, CURVE_COLUMNS]. */
  readonly f0: Tensor;
  readonly energy: Tensor;
  readonly style: SequenceStyles;
  /** A row for each frame. */
  readonly frames: SpanRows;
  readonly scratch: BlockScratch;
}

/** Computes ws.out [2 frames, generator channels]. Each block writes into the next one's joined input, so nothing is concatenated. */
export function decoder(rec: Recorder, w: DecoderWeights, config: KokoroConfig, ws: DecoderWorkspace, args: DecoderArgs): void {
  const { text, index, f0, energy, style, frames, scratch } = args;
  const { hidden, decoderDim, asrResDim } = config;
  const { end } = rowShape(frames);
  const halves = scaleRows(frames, 2);
  const texels = scratch.normed;
  const curves = (out: Tensor, column: number): void => {
    conv1d(rec, { x: f0, texels, weight: w.f0, out, stride: 2, padding: 1, rows: halves, outColumn: column });
    conv1d(rec, { x: energy, texels, weight: w.energy, out, stride: 2, padding: 1, rows: halves, outColumn: column + 1 });
  };
  expandRows(rec, { x: text, index, out: ws.input, rows: end });
  curves(ws.input, hidden);
  for (const out of ws.joined) {
    conv1d(rec, { x: ws.input, texels, weight: w.asrRes, out, rows: frames, outColumn: decoderDim });
    curves(out, decoderDim + asrResDim);
  }
  adainResBlock(rec, w.encode, { x: ws.input, out: ws.joined[0], rows: frames, style, scratch });
  w.decode.forEach((block, i) => {
    const out = i === w.decode.length - 1 ? ws.out : ws.joined[(i + 1) % 2]!;
    adainResBlock(rec, block, { x: ws.joined[i % 2]!, out, rows: frames, style, scratch });
  });
}
