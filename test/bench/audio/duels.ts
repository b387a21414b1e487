/** The parts of speech and transcription that cost most, beside ONNX Runtime's WebGPU provider on the same adapter, with the same numbers. */
import type { Device } from '../../../engine/gpu/device.ts';
import { floatStorage } from '../../../engine/config.ts';
import { snakeResBlock } from '../../../engine/models/kokoro/blocks.ts';
import { createDecoderCache, createDecoderWorkspace, decode } from '../../../engine/models/whisper/decoder.ts';
import { createEncoderWorkspace, encoderLayer, encoderStem, LAYER_NORM_EPS } from '../../../engine/models/whisper/encoder.ts';
import { loadWhisperModel } from '../../../engine/models/whisper/load.ts';
import { adainScratch } from '../../../engine/ops/adain.ts';
import { packConv1d } from '../../../engine/ops/conv.ts';
import { layerNorm } from '../../../engine/ops/norm.ts';
import { spanRows } from '../../../engine/ops/row-spans.ts';
import { createRng } from '../../../engine/util/rng.ts';
import { withWeights } from '../../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../../engine/weights/open-model-folder.ts';
import type { Contender } from '../harness.ts';
import { ortContender } from '../rival.ts';
import { snakeBlockGraph, whisperDecoderGraph, whisperEncoderGraph } from './graphs.ts';
import type { DecoderPast, SnakeLayerData } from './graphs.ts';

export interface Duel {
  readonly name: string;
  readonly contenders: readonly [Contender, Contender];
  /** How many times faster it must be. */
  readonly least: number;
}

/** [A, B] -> [B, A]. */
function transposed(values: Float32Array, a: number, b: number): Float32Array {
  return Float32Array.from({ length: a * b }, (_, i) => values[(i % a) * b + Math.floor(i / a)]!);
}

/** A window of 30 s through the encoder of a model folder. */
export async function encoderDuel(device: Device, path: string): Promise<Duel> {
  const folder = await openModelFolder(device.platform, path);
  const model = await loadWhisperModel(device, folder, floatStorage('f32'));
  const { config } = model;
  const { frames, channels } = config;
  const { mels } = config.mel;
  const rng = createRng(3);
  const features = Float32Array.from({ length: frames * mels }, () => 0.5 * rng.normal());
  const workspace = createEncoderWorkspace(device, config);
  const args = { ...model, workspace, frames };
  const graph = await withWeights(folder, (checkpoint) => whisperEncoderGraph(checkpoint, config, frames));
  const name = `Whisper encoder, ${config.encoder.layers} layers of ${channels}, 30 s`;
  const parley: Contender = {
    name: 'Parley',
    async run() {
      device.write(workspace.features, features);
      const rec = device.record('encoder');
      const rows = encoderStem(rec, args);
      model.weights.encoder.layers.forEach((_, i) => encoderLayer(rec, args, i, rows));
      layerNorm(rec, { x: workspace.hidden, ...model.weights.encoder.norm, out: workspace.normed, eps: LAYER_NORM_EPS, rows });
      const read = rec.readback(workspace.normed);
      rec.submit();
      return new Float32Array(await read.data());
    },
  };
  // The padding of `mels` to 4 is none: they are 80 or 128.
  return { name, contenders: [parley, await ortContender('webgpu', graph, { x: transposed(features, frames, mels) })], least: 2 };
}

/** Tokens before the one that is computed, and the id of that one. */
const [PAST, TOKEN] = [40, 50] as const;

/** A token of a transcript through the decoder of a model folder, with a window of 30 s, to its logits. */
export async function decoderDuel(device: Device, path: string): Promise<Duel> {
  const folder = await openModelFolder(device.platform, path);
  const model = await loadWhisperModel(device, folder, floatStorage('f32'));
  const { config, weights } = model;
  const { channels: C, sourcePositions: S } = config;
  const { heads, layers } = config.decoder;
  const rng = createRng(5);
  const random = (rows: number): Float32Array => Float32Array.from({ length: rows * 2 * C }, () => 0.5 * rng.normal());
  const past = Array.from({ length: layers }, (): DecoderPast => ({ self: random(PAST), cross: random(S) }));
  const cache = createDecoderCache(device, config, { slots: 1, lanes: 1, copies: 1 });
  const filling = device.record('past');
  past.forEach(({ self, cross }, i) => {
    device.write(cache.self[i]!, self);
    const to = cache.cross[i]!;
    if (to.texture) filling.fill(device.upload('cross', 'f32', [S, 2 * C], cross), to);
    else device.write(to, cross);
  });
  filling.submit();
  const words = (label: string, values: readonly number[]) => device.upload(label, 'u32', [values.length], Uint32Array.from(values));
  const tile = (label: string, keys: number) => ({ tiles: words(label, [0, keys, 0, 1]).reshape([1, 4]), count: 1, rows: 1 });
  const ids = words('id', [TOKEN]);
  const input = {
    ids, positions: words('position', [PAST]), cacheRows: words('cache row', [PAST]), sampledRows: words('sampled row', [0]),
    selfTiles: tile('self tile', PAST + 1), crossTiles: tile('cross tile', S), rows: 1, samples: 1,
  }; // prettier-ignore
  const workspace = createDecoderWorkspace(device, config, 1, 1);
  const run = async (): Promise<Float32Array> => {
    device.write(ids, Uint32Array.of(TOKEN));
    const rec = device.record('token');
    decode(rec, { config, weights, workspace, cache, input });
    const read = rec.readback(workspace.logits);
    rec.submit();
    return new Float32Array(await read.data());
  };
  const { graph, x } = await withWeights(folder, async (checkpoint) => {
    const row = async (name: string, index: number) =>
      (await checkpoint.read(`model.decoder.${name}.weight`)).slice(index * C, (index + 1) * C);
    const [token, place] = [await row('embed_tokens', TOKEN), await row('embed_positions', PAST)];
    return { graph: await whisperDecoderGraph(checkpoint, config, past), x: token.map((value, c) => value + place[c]!) };
  });
  const name = `Whisper decoder, a token, ${layers} layers of ${C}, ${heads} heads, ${S} positions`;
  return { name, contenders: [{ name: 'Parley', run }, await ortContender('webgpu', graph, { x })], least: 2 };
}

/** A residual block of Kokoro's vocoder: these are three quarters of what a sentence takes. */
export async function vocoderDuel(device: Device, channels: number, kernel: number, rows: number): Promise<Duel> {
  const rng = createRng(4);
  const values = (count: number, scale: number, offset = 0): Float32Array =>
    Float32Array.from({ length: count }, () => offset + scale * rng.normal());
  const half = (): SnakeLayerData['halves'][number] => ({
    scale: values(channels, 0.1, 1),
    shift: values(channels, 0.2),
    alpha: values(channels, 0.1, 1),
    weight: values(channels * channels * kernel, 1 / Math.sqrt(channels * kernel)),
    bias: values(channels, 0.1),
  });
  const layers = [1, 3, 5].map((dilation): SnakeLayerData => ({ dilation, halves: [half(), half()] }));
  const x = values(rows * channels, 1);
  const run = parleyBlock(device, layers, { channels, kernel, rows, x });
  const rival = await ortContender('webgpu', snakeBlockGraph(layers, channels, kernel, rows), { x: transposed(x, rows, channels) });
  // The rival has channels before time, as PyTorch does.
  const turned: Contender = { name: rival.name, run: async () => transposed(await rival.run(), channels, rows) };
  await rival.run();
  const name = `Kokoro residual block, ${channels} channels, kernel ${kernel}, ${rows} rows`;
  return { name, contenders: [{ name: 'Parley', run }, turned], least: 1.5 };
}

interface BlockShape {
  readonly channels: number;
  readonly kernel: number;
  readonly rows: number;
  readonly x: Float32Array;
}

function parleyBlock(device: Device, layers: readonly SnakeLayerData[], { channels, kernel, rows, x }: BlockShape): Contender['run'] {
  const width = 2 * channels;
  const halves = layers.flatMap((layer) => layer.halves);
  const styles = Float32Array.from(halves.flatMap(({ scale, shift }) => [...scale, ...shift]));
  const shape = { outChannels: channels, inChannels: channels, kernel };
  const packed = halves.map(({ alpha, weight, bias }, i) => ({
    alpha: device.upload('alpha', 'f32', [2, channels], Float32Array.from([...alpha, ...alpha.map((a) => 1 / a)])),
    conv: packConv1d(device, `conv ${i}`, weight, shape, bias),
  }));
  const block = {
    channels,
    kernel,
    layers: layers.map(({ dilation }, i) => ({
      dilation,
      norm1: 2 * i * width,
      norm2: (2 * i + 1) * width,
      alpha1: packed[2 * i]!.alpha,
      alpha2: packed[2 * i + 1]!.alpha,
      conv1: packed[2 * i]!.conv,
      conv2: packed[2 * i + 1]!.conv,
    })),
  };
  const tensor = (label: string) => device.tensor(label, 'f32', [rows, channels]);
  const table = device.upload('spans', 'u32', [1, 4], Uint32Array.of(0, rows, 0, 0));
  const input = tensor('x');
  const out = tensor('out');
  const style = { tensor: device.upload('styles', 'f32', [1, styles.length], styles), row: 0 };
  const adain = adainScratch(device, rows * channels, channels);
  const scratch = { capacity: rows, normed: tensor('normed'), mid: tensor('mid'), sum: tensor('sum'), adain };
  const args = { x: input, out, rows: spanRows({ table, count: 1, longest: rows, end: rows }, 1), style, scratch };
  return async () => {
    device.write(input, x);
    const rec = device.record('residual block');
    snakeResBlock(rec, block, args);
    const read = rec.readback(out);
    rec.submit();
    return new Float32Array(await read.data());
  };
}
