/**
 * Kokoro (StyleTTS 2 with iSTFTNet; hexgrad/kokoro): phoneme ids and a style vector to audio, in pieces that a runner submits one by one.
 */
import type { WeightStorage } from '../../config.ts';
import { assert } from '../../errors.ts';
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { adainScratch } from '../../ops/adain.ts';
import { convInput, convPlace } from '../../ops/conv.ts';
import { linear } from '../../ops/linear.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { rowShape } from '../../ops/row-spans.ts';
import type { SequenceStyles } from '../../ops/row-spans.ts';
import { alignUp } from '../../util/math.ts';
import type { Checkpoint } from '../../weights/checkpoint.ts';
import type { StorageRule } from '../../weights/storage.ts';
import { WeightLoader } from '../weight-loader.ts';
import { albert, createAlbertWorkspace, loadAlbert } from './albert.ts';
import type { AlbertWeights, AlbertWorkspace } from './albert.ts';
import { createFrameInput, createTextInput } from './batch.ts';
import type { FrameBatch, FrameInput, TextBatch, TextInput } from './batch.ts';
import type { BlockScratch } from './blocks.ts';
import type { KokoroConfig } from './config.ts';
import { createDecoderWorkspace, decoder, loadDecoder } from './decoder.ts';
import type { DecoderWeights, DecoderWorkspace } from './decoder.ts';
import { createGeneratorWorkspace, generatorHead, generatorSize, generatorSource, generatorStage, loadGenerator } from './generator.ts';
import type { GeneratorWeights, GeneratorWorkspace } from './generator.ts';
import { createCurvesWorkspace, createProsodyWorkspace, loadProsody, predictCurves, predictDurations } from './prosody.ts';
import type { CurvesWorkspace, ProsodyWeights, ProsodyWorkspace } from './prosody.ts';
import { createTextEncoderWorkspace, loadTextEncoder, textEncoder } from './text-encoder.ts';
import type { TextEncoderWeights, TextEncoderWorkspace } from './text-encoder.ts';
import { MAX_SENTENCES, StyleBuilder, createStyles, projectStyle } from './weights.ts';
import type { StyleProjection, StyleSizes, Styles } from './weights.ts';

export interface KokoroWeights {
  readonly parameters: number;
  readonly bert: AlbertWeights;
  readonly bertEncoder: { readonly weight: LinearWeight; readonly bias: Tensor };
  readonly prosody: ProsodyWeights;
  readonly text: TextEncoderWeights;
  readonly decoder: DecoderWeights;
  readonly generator: GeneratorWeights;
  /** The second half of a voice: rhythm and pitch. */
  readonly prosodyStyle: StyleProjection;
  /** The first half of a voice: timbre. */
  readonly decoderStyle: StyleProjection;
}

/**
 * How a tensor is stored. Weights that pitch depends on are f32 whichever float type is asked for: phases are sums of pitch over all
 * samples, so a rounding error that is inaudible in a tone moves the waveform more, the longer a sentence is. The log-mel distance of
 * published Kokoro from the reference is 0.035 to 0.075 with all weights in f16, and 0.0006 to 0.0022 with these in f32. Matrices are
 * quantised where that is asked for, except those of an LSTM; its input matrices stay int8 where the file has int8. Style projections
 * (`.fc`) are computed from several tensors, so they keep no file's integers.
 */
export const kokoroStorage: StorageRule = (name, asked) => {
  const float = /^(bert|predictor)|\.fc\.weight$/.test(name) ? 'f32' : asked.float;
  const keepBlocks = asked.keepBlocks && !/\.fc\.weight$|\.weight_hh_/.test(name);
  return { float, keepBlocks, quantization: /\.weight_[ih]h_/.test(name) ? 'none' : asked.quantization };
};

/** Loads every tensor of a checkpoint; throws EngineError('invalid_model') for missing, misshapen or unknown ones. */
export async function loadKokoro(
  device: Device,
  checkpoint: Checkpoint,
  config: KokoroConfig,
  storage: WeightStorage,
): Promise<KokoroWeights> {
  const weights = new WeightLoader(device, checkpoint, storage);
  const exact = weights.as({ ...storage, float: 'f32' });
  const dtype = storage.float;
  const prosodyLoader = { weights: exact, dtype: 'f32' as const, style: new StyleBuilder(config.styleDim) };
  const decoderLoader = { weights, dtype, style: new StyleBuilder(config.styleDim) };
  const bert = await loadAlbert(exact, config.bert, config.symbols);
  const bertEncoder = {
    weight: await exact.linear('bert_encoder.weight', config.hidden, config.bert.hidden),
    bias: await exact.tensor('bert_encoder.bias', [config.hidden]),
  };
  const prosody = await loadProsody(prosodyLoader, config);
  const text = await loadTextEncoder({ weights, dtype, style: prosodyLoader.style }, config);
  const decoderWeights = await loadDecoder(decoderLoader, config);
  const generator = await loadGenerator(decoderLoader, config);
  const prosodyStyle = await prosodyLoader.style.build(exact, 'prosody');
  const decoderStyle = await decoderLoader.style.build(exact, 'decoder');
  await weights.finish();
  return {
    parameters: weights.parameters,
    bert,
    bertEncoder,
    prosody,
    text,
    decoder: decoderWeights,
    generator,
    prosodyStyle,
    decoderStyle,
  };
}

/** Activations per token, allocated once for the longest sentence; a batch of shorter ones shares the same rows. */
export interface TextWorkspace {
  readonly maxTokens: number;
  readonly textInput: TextInput;
  readonly prosodyStyles: Styles;
  readonly decoderStyles: Styles;
  readonly bert: AlbertWorkspace;
  /** [maxTokens, hidden]: d_en. */
  readonly phonemes: Tensor;
  readonly prosody: ProsodyWorkspace;
  readonly text: TextEncoderWorkspace;
  /** LSTM scratch [maxTokens, 4 hidden]. */
  readonly textGates: Tensor;
}

/** Activations per frame: nearly all of the memory. The number of frames is known only once a sentence's durations are. */
export interface FrameWorkspace {
  /** Token frames. */
  readonly maxFrames: number;
  readonly frameInput: FrameInput;
  readonly curves: CurvesWorkspace;
  readonly decoder: DecoderWorkspace;
  readonly generator: GeneratorWorkspace;
  /** LSTM scratch [maxFrames, 4 hidden]. */
  readonly frameGates: Tensor;
  readonly scratch: BlockScratch;
}

/** Every tensor that a batch needs. */
export type KokoroWorkspace = TextWorkspace & FrameWorkspace;

/** Frame workspaces are allocated for multiples of this many token frames. */
export const FRAME_STEP = 64;

/** Largest number of token frames (a multiple of 64, at most `wanted`) whose tensors this adapter can bind. */
export function maxKokoroFrames(device: Device, config: KokoroConfig, wanted: number): number {
  const parts = config.generator.resblockKernels.length;
  const { maxBindingBytes, maxTexels } = device.caps;
  const mostInputs = convPlace(device.caps) === 'texture' ? 4 * maxTexels : Infinity;
  const fits = ({ elements, inputs }: ReturnType<typeof generatorSize>): boolean =>
    elements * parts * 4 <= maxBindingBytes && inputs <= mostInputs;
  let frames = alignUp(wanted, FRAME_STEP);
  while (frames > FRAME_STEP && !fits(generatorSize(config, frames))) frames -= FRAME_STEP;
  return frames;
}

/** Allocates both parts of a workspace; `maxFrames` comes from maxKokoroFrames. */
export function createKokoroWorkspace(
  device: Device,
  config: KokoroConfig,
  sizes: StyleSizes,
  maxTokens: number,
  maxFrames: number,
): KokoroWorkspace {
  return { ...createTextWorkspace(device, config, sizes, maxTokens), ...createFrameWorkspace(device, config, maxFrames) };
}

function createTextWorkspace(device: Device, config: KokoroConfig, sizes: StyleSizes, maxTokens: number): TextWorkspace {
  const { hidden, bert, styleDim } = config;
  return {
    maxTokens,
    textInput: createTextInput(device, config, maxTokens),
    prosodyStyles: createStyles(device, 'prosody', styleDim, sizes.prosodyStyle),
    decoderStyles: createStyles(device, 'decoder', styleDim, sizes.decoderStyle),
    bert: createAlbertWorkspace(device, bert, maxTokens),
    phonemes: device.tensor('phonemes', 'f32', [maxTokens, hidden]),
    prosody: createProsodyWorkspace(device, config, maxTokens),
    text: createTextEncoderWorkspace(device, hidden, maxTokens),
    textGates: device.tensor('text lstm gates', 'f32', [maxTokens, 4 * hidden]),
  };
}

/** Allocates activations for at most `maxFrames` token frames. */
export function createFrameWorkspace(device: Device, config: KokoroConfig, maxFrames: number): FrameWorkspace {
  const { hidden, decoderDim, asrResDim, generator } = config;
  const widest = alignUp(Math.max(decoderDim + asrResDim + 2, hidden + 2, generator.channels), 4);
  const elements = 2 * maxFrames * widest;
  const flat = (label: string): Tensor => device.tensor(`block ${label}`, 'f32', [elements]);
  return {
    maxFrames,
    frameInput: createFrameInput(device, maxFrames),
    curves: createCurvesWorkspace(device, config, maxFrames),
    decoder: createDecoderWorkspace(device, config, maxFrames),
    generator: createGeneratorWorkspace(device, config, maxFrames, MAX_SENTENCES),
    frameGates: device.tensor('frame lstm gates', 'f32', [maxFrames, 4 * hidden]),
    scratch: {
      capacity: 2 * maxFrames,
      normed: convInput(device, 'block normed', elements),
      pooled: flat('pooled'),
      mid: flat('mid'),
      shortcut: flat('shortcut'),
      adain: adainScratch(device, elements, widest, MAX_SENTENCES),
    },
  };
}

/** Computes ws.prosody.durations [tokens] and ws.text.encoded [tokens, hidden] from what writeText wrote. */
export function forwardText(rec: Recorder, w: KokoroWeights, config: KokoroConfig, ws: KokoroWorkspace, batch: TextBatch): void {
  const { tokens, over } = batch;
  const { end, count } = rowShape(tokens);
  assert(end <= ws.maxTokens, `kokoro: ${end} tokens, the workspace holds ${ws.maxTokens}`);
  projectStyle(rec, w.prosodyStyle, ws.prosodyStyles, count);
  projectStyle(rec, w.decoderStyle, ws.decoderStyles, count);
  const { ids, positions } = ws.textInput;
  albert(rec, w.bert, config.bert, ws.bert, { ids, positions, tokens: end, over });
  linear(rec, { x: ws.bert.hidden, ...w.bertEncoder, out: ws.phonemes, rows: end });
  predictDurations(rec, w.prosody, ws.prosody, {
    x: ws.phonemes,
    style: { tensor: ws.prosodyStyles.output, row: 0 },
    gates: ws.textGates,
    tokens,
  });
  textEncoder(rec, w.text, ws.text, { ids, gates: ws.textGates, tokens });
}

/** Computes F0 and energy from what writeFrames wrote, then the vocoder's input, ws.decoder.out. */
export function forwardDecoder(rec: Recorder, w: KokoroWeights, config: KokoroConfig, ws: KokoroWorkspace, batch: FrameBatch): void {
  const { frames } = batch;
  const { end } = rowShape(frames);
  assert(end <= ws.maxFrames, `kokoro: ${end} frames, the workspace holds ${ws.maxFrames}`);
  const { frameGates: gates, scratch } = ws;
  const { index } = ws.frameInput;
  const { encoded } = ws.prosody;
  predictCurves(rec, w.prosody, ws.curves, { encoded, index, style: styleOf(ws.prosodyStyles, batch), gates, frames, scratch });
  const curves = { f0: ws.curves.f0, energy: ws.curves.energy };
  const style = styleOf(ws.decoderStyles, batch);
  decoder(rec, w.decoder, config, ws.decoder, { text: ws.text.encoded, index, ...curves, style, frames, scratch });
}

/** Computes the source's spectra from F0; `noiseScale` 0 = no noise, 1 = as trained. */
export function forwardSource(
  rec: Recorder,
  w: KokoroWeights,
  config: KokoroConfig,
  ws: KokoroWorkspace,
  { frames }: FrameBatch,
  noiseScale = 1,
): void {
  generatorSource(rec, w.generator, config, ws.generator, { f0: ws.curves.f0, frames, noiseScale });
}

/** Computes one upsampling stage of the vocoder. */
export function forwardStage(rec: Recorder, w: KokoroWeights, ws: KokoroWorkspace, stage: number, batch: FrameBatch): void {
  const args = { decoded: ws.decoder.out, frames: batch.frames, style: styleOf(ws.decoderStyles, batch) };
  generatorStage(rec, w.generator, ws.generator, stage, args);
}

/** Computes ws.generator.audio. A sentence begins at the samples of its first frame; a frame is 2 samplesPerF0Frame samples. */
export function forwardHead(rec: Recorder, w: KokoroWeights, ws: KokoroWorkspace, { frames }: FrameBatch): void {
  generatorHead(rec, w.generator, ws.generator, frames);
}

/** The style projection's rows for the sentences of a batch. */
function styleOf({ output }: Styles, { from }: FrameBatch): SequenceStyles {
  return { tensor: output, row: from };
}
