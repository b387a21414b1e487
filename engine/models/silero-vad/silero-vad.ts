/**
 * Silero VAD for 16 kHz audio: the probability of speech in each chunk of 32 ms. MODEL.md has the shapes and the differences from the
 * original.
 */
import { floatStorage } from '../../config.ts';
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { activate } from '../../ops/activation.ts';
import { linear } from '../../ops/linear.ts';
import { lstmForward, lstmWeight } from '../../ops/lstm.ts';
import type { LstmWeight } from '../../ops/lstm.ts';
import { packLinear } from '../../ops/pack-linear.ts';
import { magnitude } from '../../ops/spectral.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { alignUp } from '../../util/math.ts';
import type { Checkpoint } from '../../weights/checkpoint.ts';
import { WeightLoader } from '../weight-loader.ts';

/** Sample rate, in Hz. */
export const VAD_RATE = 16000;
/** Samples of a chunk. */
export const VAD_CHUNK = 512;
/** Samples before a chunk that belong to its input. */
export const VAD_CONTEXT = 64;
/** Units of the LSTM. */
export const VAD_HIDDEN = 128;
/** Short-time Fourier transform: samples per frame, samples between frames, and frames per chunk. */
const FFT = { size: 256, hop: 128, frames: 4 } as const;
const BINS = FFT.size / 2 + 1;
/** Samples of padding after a chunk, which mirror its end. */
const MIRRORED = (FFT.frames - 1) * FFT.hop + FFT.size - VAD_CONTEXT - VAD_CHUNK;

/** Convolutions over the frames of a chunk, with three taps and padding 1. */
const CONVOLUTIONS = [
  { inChannels: BINS, outChannels: 128, inFrames: 4, stride: 1 },
  { inChannels: 128, outChannels: 64, inFrames: 4, stride: 2 },
  { inChannels: 64, outChannels: 64, inFrames: 2, stride: 2 },
  { inChannels: 64, outChannels: VAD_HIDDEN, inFrames: 1, stride: 1 },
] as const;
type Convolution = (typeof CONVOLUTIONS)[number];
const TAPS = 3;
const outFrames = ({ inFrames, stride }: Convolution): number => inFrames / stride;

/** Weights on a device. */
export interface SileroVad {
  /** [2 BINS, 256]: Hann window times cosines, then minus sines. */
  readonly dft: LinearWeight;
  /** For each of CONVOLUTIONS: a matrix [frames out * channels out, frames in * channels in], and a bias for each of its rows. */
  readonly layers: readonly { readonly weight: LinearWeight; readonly bias: Tensor }[];
  readonly lstm: LstmWeight;
  /** [1, 128] and its bias [1]. */
  readonly out: { readonly weight: LinearWeight; readonly bias: Tensor };
}

/** Least bytes of a buffer, on every device. */
const LEAST_BYTES = 16;

/** Device bytes of the weights as loadSileroVad stores them: matrices in f16 with rows padded to 8, the DFT and vectors in f32. */
export function sileroVadBytes(): number {
  const matrix = (rows: number, columns: number, size: number): number => alignUp(rows, 8) * columns * size;
  const gates = 4 * VAD_HIDDEN;
  const layers = CONVOLUTIONS.map((layer) => {
    const rows = outFrames(layer) * layer.outChannels;
    return matrix(rows, layer.inFrames * layer.inChannels, 2) + 4 * rows;
  });
  const lstm = 2 * matrix(gates, VAD_HIDDEN, 2) + 4 * gates;
  return matrix(2 * BINS, FFT.size, 4) + layers.reduce((sum, bytes) => sum + bytes, lstm) + matrix(1, VAD_HIDDEN, 2) + LEAST_BYTES;
}

/** Loads the checkpoint models/silero-vad; throws EngineError('invalid_model') for anything else. */
export async function loadSileroVad(device: Device, checkpoint: Checkpoint): Promise<SileroVad> {
  const loader = new WeightLoader(device, checkpoint, floatStorage('f16'));
  const layers: { weight: LinearWeight; bias: Tensor }[] = [];
  for (const [i, layer] of CONVOLUTIONS.entries()) {
    const { inChannels, outChannels, inFrames } = layer;
    const taps = await loader.data(`conv${i + 1}.weight`, [outChannels, inChannels, TAPS]);
    const bias = await loader.data(`conv${i + 1}.bias`, [outChannels]);
    const count = outFrames(layer);
    const repeated = Float32Array.from({ length: count * outChannels }, (_, n) => bias[n % outChannels]!);
    layers.push({
      weight: packLinear(device, `vad conv ${i + 1}`, unrolled(taps, layer), count * outChannels, inFrames * inChannels, 'f16'),
      bias: device.upload(`vad conv ${i + 1} bias`, 'f32', [repeated.length], repeated),
    });
  }
  const gates = 4 * VAD_HIDDEN;
  const [ih, hh] = [await loader.data('lstm.bias_ih', [gates]), await loader.data('lstm.bias_hh', [gates])];
  const weight = {
    input: await loader.linear('lstm.weight_ih', gates, VAD_HIDDEN),
    recurrent: await loader.linear('lstm.weight_hh', gates, VAD_HIDDEN, { place: 'buffer' }),
    bias: device.upload('vad gates bias', 'f32', [gates], ih.map((value, i) => value + hh[i]!)), // prettier-ignore
  };
  const last = packLinear(device, 'vad out', await loader.data('out.weight', [1, VAD_HIDDEN, 1]), 1, VAD_HIDDEN, 'f16');
  const out = { weight: last, bias: await loader.tensor('out.bias', [1]) };
  await loader.finish();
  return { dft: packLinear(device, 'vad dft', dftBasis(), 2 * BINS, FFT.size), layers, lstm: lstmWeight('vad lstm', weight, 1), out };
}

/** The DFT matrix [2 BINS, 256] with a periodic Hann window. */
function dftBasis(): Float32Array {
  return Float32Array.from({ length: 2 * BINS * FFT.size }, (_, at) => {
    const [row, n] = [Math.floor(at / FFT.size), at % FFT.size];
    const window = 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / FFT.size);
    const angle = (2 * Math.PI * (((row % BINS) * n) % FFT.size)) / FFT.size;
    return window * (row < BINS ? Math.cos(angle) : -Math.sin(angle));
  });
}

/** A convolution [channels out, channels in, 3] over all frames of a chunk as one matrix. Taps that fall into the padding are left out. */
function unrolled(taps: Float32Array, layer: Convolution): Float32Array {
  const { inChannels, outChannels, inFrames, stride } = layer;
  const width = inFrames * inChannels;
  const matrix = new Float32Array(outFrames(layer) * outChannels * width);
  for (let t = 0; t < outFrames(layer); t++)
    for (let n = 0; n < outChannels; n++)
      for (let tap = 0; tap < TAPS; tap++) {
        const frame = t * stride + tap - 1;
        if (frame < 0 || frame >= inFrames) continue;
        const at = (t * outChannels + n) * width + frame * inChannels;
        for (let c = 0; c < inChannels; c++) matrix[at + c] = taps[(n * inChannels + c) * TAPS + tap]!;
      }
  return matrix;
}

/** Activations for a block of chunks. */
export interface VadWorkspace {
  /** Chunks of a block. */
  readonly chunks: number;
  /** [4 chunks, 256] from vadFrames. */
  readonly frames: Tensor;
  readonly spectrum: Tensor;
  /** [chunks, columns]: the input of each convolution, and the output of the last. */
  readonly rows: readonly Tensor[];
  readonly gates: Tensor;
  readonly hidden: Tensor;
  readonly positive: Tensor;
  /** [chunks, 1]. */
  readonly probabilities: Tensor;
  /** [2, 128]: the LSTM's state. */
  readonly kept: Tensor;
}

/** Allocates activations for blocks of `chunks` chunks. */
export function createVadWorkspace(device: Device, chunks: number): VadWorkspace {
  const widths = [FFT.frames * BINS, ...CONVOLUTIONS.map((layer) => outFrames(layer) * layer.outChannels)];
  return {
    chunks,
    frames: device.tensor('vad frames', 'f32', [FFT.frames * chunks, FFT.size]),
    spectrum: device.tensor('vad spectrum', 'f32', [FFT.frames * chunks, 2 * BINS]),
    rows: widths.map((width, i) => device.tensor(`vad rows ${i}`, 'f32', [chunks, width])),
    gates: device.tensor('vad gates', 'f32', [chunks, 4 * VAD_HIDDEN]),
    hidden: device.tensor('vad hidden', 'f32', [chunks, VAD_HIDDEN]),
    positive: device.tensor('vad positive', 'f32', [chunks, VAD_HIDDEN]),
    probabilities: device.tensor('vad probabilities', 'f32', [chunks, 1]),
    kept: device.tensor('vad state', 'f32', [2, VAD_HIDDEN]),
  };
}

/** Cuts samples into frames [4 chunks, 256]. `samples` begin with the 64 before the first chunk; zeros are added where they end early. */
export function vadFrames(samples: Float32Array, chunks: number): Float32Array {
  const frames = new Float32Array(chunks * FFT.frames * FFT.size);
  const heard = VAD_CONTEXT + VAD_CHUNK;
  const chunk = new Float32Array(heard + MIRRORED);
  for (let i = 0; i < chunks; i++) {
    const part = samples.subarray(i * VAD_CHUNK, i * VAD_CHUNK + heard);
    chunk.fill(0).set(part);
    for (let n = 0; n < MIRRORED; n++) chunk[heard + n] = chunk[heard - 2 - n]!;
    for (let frame = 0; frame < FFT.frames; frame++)
      frames.set(chunk.subarray(frame * FFT.hop, frame * FFT.hop + FFT.size), (i * FFT.frames + frame) * FFT.size);
  }
  return frames;
}

/**
 * Leaves the speech probabilities of the first `steps` chunks of ws.frames in ws.probabilities; the LSTM state in ws.kept advances by as
 * many.
 */
export function sileroVad(rec: Recorder, vad: SileroVad, ws: VadWorkspace, steps: number): void {
  const { chunks, frames, spectrum, rows } = ws;
  linear(rec, { x: frames, weight: vad.dft, out: spectrum });
  magnitude(rec, { x: spectrum, out: rows[0]!, frames: FFT.frames * chunks });
  for (const [i, { weight, bias }] of vad.layers.entries()) {
    linear(rec, { x: rows[i]!, weight, bias, out: rows[i + 1]!, activation: 'relu' });
  }
  lstmForward(rec, { x: rows.at(-1)!, weight: vad.lstm, kept: ws.kept, out: ws.hidden, inputs: ws.gates, rows: chunks, steps });
  activate(rec, { x: ws.hidden, out: ws.positive, activation: 'relu' });
  linear(rec, { x: ws.positive, weight: vad.out.weight, bias: vad.out.bias, out: ws.probabilities, activation: 'sigmoid' });
}
