/** iSTFTNet vocoder with a harmonic-plus-noise source (Kaneko et al. 2022; istftnet.py Generator). */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { adainScratch } from '../../ops/adain.ts';
import type { AdainScratch } from '../../ops/adain.ts';
import { conv1d, convInput, convTranspose1d } from '../../ops/conv.ts';
import type { ConvTransposeWeight, ConvWeight } from '../../ops/conv.ts';
import { createShortFourier, istftHead, stftPolar } from '../../ops/istft.ts';
import type { FourierScratch, ShortFourier } from '../../ops/istft.ts';
import { rowShape, scaleRows, spanRows } from '../../ops/row-spans.ts';
import type { SequenceStyles, SpanRows } from '../../ops/row-spans.ts';
import { averageLeaky, mirrorAdd } from '../../ops/rows.ts';
import { harmonicSource } from '../../ops/source.ts';
import { alignUp } from '../../util/math.ts';
import { loadSnakeResBlock, snakeResBlock } from './blocks.ts';
import type { SnakeResBlock } from './blocks.ts';
import type { KokoroConfig } from './config.ts';
import { loadConv, loadConvTranspose } from './weights.ts';
import type { KokoroLoader } from './weights.ts';

/** Fundamental and eight overtones. */
const HARMONICS = 9;
const SLOPE = 0.1;
const LAST_SLOPE = 0.01;
const POST_KERNEL = 7;
/**
 * Kernel sizes (the last stage has a larger one) and dilations of the residual blocks that process the source. Their number of layers is
 * odd, as generatorStage needs.
 */
const NOISE_KERNEL = 7;
const LAST_NOISE_KERNEL = 11;
const NOISE_DILATIONS = [1, 3, 5];

interface Stage {
  readonly channels: number;
  readonly up: ConvTransposeWeight;
  readonly upPadding: number;
  readonly noiseConv: ConvWeight;
  readonly noiseStride: number;
  readonly noisePadding: number;
  readonly noiseRes: SnakeResBlock;
  readonly blocks: readonly SnakeResBlock[];
  readonly last: boolean;
}

export interface GeneratorWeights {
  readonly stages: readonly Stage[];
  readonly post: ConvWeight;
  /** [HARMONICS + 1]: the source's merging weights, then its bias. */
  readonly merge: Tensor;
  readonly fourier: ShortFourier;
}

/** Loads `decoder.generator.*`. */
export async function loadGenerator(loader: KokoroLoader, config: KokoroConfig): Promise<GeneratorWeights> {
  const { generator } = config;
  const { weights } = loader;
  const stages: Stage[] = [];
  for (let i = 0; i < generator.upsampleRates.length; i++) stages.push(await loadStage(loader, config, i));
  const merge = new Float32Array(HARMONICS + 1);
  merge.set(await weights.data('decoder.generator.m_source.l_linear.weight', [1, HARMONICS]));
  merge.set(await weights.data('decoder.generator.m_source.l_linear.bias', [1]), HARMONICS);
  const post = { outChannels: generator.nFft + 2, inChannels: stages.at(-1)!.channels, kernel: POST_KERNEL };
  return {
    stages,
    post: await loadConv(loader, 'decoder.generator.conv_post', post),
    merge: weights.device.upload('source merge', 'f32', [HARMONICS + 1], merge),
    fourier: createShortFourier(weights.device, generator.nFft, generator.hop),
  };
}

async function loadStage(loader: KokoroLoader, { generator }: KokoroConfig, i: number): Promise<Stage> {
  const { upsampleRates, upsampleKernels, resblockKernels, resblockDilations } = generator;
  const name = 'decoder.generator';
  const last = i === upsampleRates.length - 1;
  const channels = generator.channels / 2 ** (i + 1);
  const kernel = upsampleKernels[i]!;
  const stride = upsampleRates[i]!;
  // The source is at the last stage's rate, so earlier stages convolve it with a stride.
  const noiseStride = upsampleRates.slice(i + 1).reduce((a, b) => a * b, 1);
  const noiseKernel = last ? 1 : 2 * noiseStride;
  const blocks: SnakeResBlock[] = [];
  for (const [j, blockKernel] of resblockKernels.entries()) {
    const shape = { channels, kernel: blockKernel, dilations: resblockDilations[j]! };
    blocks.push(await loadSnakeResBlock(loader, `${name}.resblocks.${i * resblockKernels.length + j}`, shape));
  }
  const up = { outChannels: channels, inChannels: 2 * channels, kernel, stride };
  const noise = { outChannels: channels, inChannels: generator.nFft + 2, kernel: noiseKernel };
  const noiseRes = { channels, kernel: last ? LAST_NOISE_KERNEL : NOISE_KERNEL, dilations: NOISE_DILATIONS };
  return {
    channels,
    up: await loadConvTranspose(loader, `${name}.ups.${i}`, up),
    upPadding: (kernel - stride) / 2,
    noiseConv: await loadConv(loader, `${name}.noise_convs.${i}`, noise),
    noiseStride,
    noisePadding: last ? 0 : Math.floor((noiseStride + 1) / 2),
    noiseRes: await loadSnakeResBlock(loader, `${name}.noise_res.${i}`, noiseRes),
    blocks,
    last,
  };
}

/** Sizes for a number of token frames: spectra, the most values of a stage's tensor, and the most values that a convolution reads. */
export function generatorSize(
  { generator }: KokoroConfig,
  frames: number,
): { readonly spectra: number; readonly elements: number; readonly inputs: number } {
  let rows = 2 * frames;
  let elements = rows * generator.channels;
  generator.upsampleRates.forEach((rate, i) => {
    rows *= rate;
    elements = Math.max(elements, alignUp(rows + 1, 64) * (generator.channels / 2 ** (i + 1)));
  });
  return { spectra: rows + 1, elements, inputs: Math.max(elements, (rows + 1) * alignUp(generator.nFft + 2, 4)) };
}

export interface GeneratorWorkspace {
  /** [2 frames, HARMONICS]. */
  readonly phase: Tensor;
  /** [samples]: the source signal. */
  readonly source: Tensor;
  /** [spectra, 2 bins padded to 4]: magnitudes and angles of the source; the padding stays zero. */
  readonly harmonics: Tensor;
  /** [spectra, 2 bins padded to 4]: the last convolution's output. */
  readonly post: Tensor;
  readonly fourier: FourierScratch;
  /** Flat, as are the next four: viewed as [stage rows, stage channels]. */
  readonly x: Tensor;
  readonly up: Tensor;
  /** Outputs of a stage's residual blocks. */
  readonly parts: Tensor;
  /** Input of the next convolution: what the next stage upsamples, and after the last stage what becomes samples. */
  readonly normed: Tensor;
  readonly mid: Tensor;
  readonly adain: AdainScratch;
  /** Capacity in rows of each stage, a multiple of 64. */
  readonly capacities: readonly number[];
  /** [samples]: the audio. */
  readonly audio: Tensor;
}

/** Allocates activations for at most `frames` token frames of at most `sequences` sentences. */
export function createGeneratorWorkspace(device: Device, config: KokoroConfig, frames: number, sequences: number): GeneratorWorkspace {
  const { generator, samplesPerF0Frame } = config;
  const { spectra, elements, inputs } = generatorSize(config, frames);
  const width = alignUp(generator.nFft + 2, 4);
  const tensor = (label: string, shape: readonly number[]): Tensor => device.tensor(`generator ${label}`, 'f32', shape);
  const flat = (label: string): Tensor => tensor(label, [elements]);
  let rows = 2 * frames;
  const capacities = generator.upsampleRates.map((rate) => alignUp((rows *= rate) + 1, 64));
  return {
    phase: tensor('phase', [2 * frames, HARMONICS]),
    source: tensor('source', [2 * frames * samplesPerF0Frame]),
    harmonics: tensor('harmonics', [spectra, width]),
    post: tensor('post', [spectra, width]),
    fourier: { frames: tensor('frames', [spectra, generator.nFft]), spectrum: tensor('spectrum', [spectra, width]) },
    x: flat('x'),
    up: flat('up'),
    parts: tensor('parts', [generator.resblockKernels.length * elements]),
    normed: convInput(device, 'generator normed', inputs),
    mid: flat('mid'),
    adain: adainScratch(device, elements, generator.channels, sequences),
    capacities,
    audio: tensor('audio', [2 * frames * samplesPerF0Frame]),
  };
}

/** Rows after the first `stages` stages. The last stage's output has one row more (spectraOf). */
function stageRows(w: GeneratorWeights, frames: SpanRows, stages: number): SpanRows {
  return scaleRows(frames, 2 * w.stages.slice(0, stages).reduce((product, { up }) => product * up.stride, 1));
}

/** Rows of the last stage's output, one per spectrum: one more than stageRows says. */
function spectraOf(w: GeneratorWeights, frames: SpanRows): SpanRows {
  const { spans, unit } = stageRows(w, frames, w.stages.length);
  return spanRows(spans, unit, 1);
}

export interface SourceArgs {
  /** [2 frames, CURVE_COLUMNS]. */
  readonly f0: Tensor;
  /** A row for each frame. */
  readonly frames: SpanRows;
  /** 0 = no noise, 1 = as trained; each sentence has its own seed. */
  readonly noiseScale: number;
}

/** Computes ws.harmonics, the spectra of the source signal, from F0. */
export function generatorSource(
  rec: Recorder,
  w: GeneratorWeights,
  config: KokoroConfig,
  ws: GeneratorWorkspace,
  { f0, frames, noiseScale }: SourceArgs,
): void {
  const { samplesPerF0Frame, sampleRate } = config;
  const noise = { seed: 0, firstSample: 0, scale: noiseScale };
  const common = { f0, frames: scaleRows(frames, 2), phase: ws.phase, merge: w.merge, out: ws.source };
  harmonicSource(rec, { ...common, samplesPerFrame: samplesPerF0Frame, sampleRate, noise });
  stftPolar(rec, w.fourier, { signal: ws.source, frames: spectraOf(w, frames), out: ws.harmonics, scratch: ws.fourier });
}

export interface StageArgs {
  /** Decoder output [2 frames, channels]; read by stage 0. */
  readonly decoded: Tensor;
  /** A row for each frame. */
  readonly frames: SpanRows;
  readonly style: SequenceStyles;
}

/**
 * Stage `i`: upsamples ws.normed (stage 0: the decoder's output), adds the source, and leaves the average of the residual blocks in
 * ws.normed.
 */
export function generatorStage(rec: Recorder, w: GeneratorWeights, ws: GeneratorWorkspace, i: number, args: StageArgs): void {
  const { decoded, frames, style } = args;
  const stage = w.stages[i]!;
  const { channels, last } = stage;
  const capacity = ws.capacities[i]!;
  const view = (tensor: Tensor): Tensor => tensor.reshape([capacity, channels]);
  const x = view(ws.x);
  const parts = ws.parts.reshape([stage.blocks.length, capacity, channels]);
  const part = (j: number): Tensor => view(parts.rows(j, j + 1));
  const { normed, mid, adain } = ws;
  const rows = last ? spectraOf(w, frames) : stageRows(w, frames, i + 1);
  const { end } = rowShape(rows);
  const block = (snake: SnakeResBlock, out: Tensor, sum: Tensor): void =>
    snakeResBlock(rec, snake, { x, out, rows, style, scratch: { capacity, normed, mid, adain, sum } });
  const rowsIn = stageRows(w, frames, i);
  const input = normed.reshape([i === 0 ? decoded.shape[0]! : ws.capacities[i - 1]!, 2 * channels]);
  if (i === 0) averageLeaky(rec, { parts: decoded.reshape([1, ...decoded.shape]), out: input, rows: rowShape(rowsIn).end, slope: SLOPE });
  convTranspose1d(rec, { x: input, weight: stage.up, out: view(ws.up), padding: stage.upPadding, rows: rowsIn });
  const noise = { stride: stage.noiseStride, padding: stage.noisePadding, rows: spectraOf(w, frames) };
  conv1d(rec, { x: ws.harmonics, texels: normed, weight: stage.noiseConv, out: x, ...noise });
  // The block's first layer is the last to read x, and its second layer the first to write to its buffer.
  block(stage.noiseRes, part(0), ws.x);
  mirrorAdd(rec, { x: view(ws.up), y: part(0), out: x, rows, pad: last ? 1 : 0 });
  // ws.up is free: the upsampled rows are in x by now.
  stage.blocks.forEach((snake, j) => block(snake, part(j), ws.up));
  averageLeaky(rec, { parts, out: view(normed), rows: end, slope: last ? LAST_SLOPE : SLOPE });
}

/** Computes ws.audio [samples] from the last stage's ws.normed. */
export function generatorHead(rec: Recorder, w: GeneratorWeights, ws: GeneratorWorkspace, frames: SpanRows): void {
  const last = w.stages.at(-1)!;
  const rows = spectraOf(w, frames);
  const x = ws.normed.reshape([ws.capacities.at(-1)!, last.channels]);
  conv1d(rec, { x, weight: w.post, out: ws.post, padding: (POST_KERNEL - 1) / 2, rows });
  istftHead(rec, w.fourier, { x: ws.post, frames: rows, out: ws.audio, scratch: ws.fourier });
}
