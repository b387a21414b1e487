import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { cacheInTexels, denseAttention, denseStore } from '../../ops/dense-attention.ts';
import type { Tiles } from '../../ops/dense-attention.ts';
import { add } from '../../ops/elementwise.ts';
import { embedding } from '../../ops/embedding.ts';
import { linear } from '../../ops/linear.ts';
import { layerNorm } from '../../ops/norm.ts';
import { gatherRows } from '../../ops/sample.ts';
import { alignUp } from '../../util/math.ts';
import type { WhisperConfig } from './config.ts';
import { LAYER_NORM_EPS, feedForward } from './encoder.ts';
import type { DecoderLayer, WhisperWeights } from './weights.ts';

/** Input of a decoder step: T rows, each one token of a sequence, B of them sampled. */
export interface DecoderInput {
  /** [T] u32. */
  readonly ids: Tensor;
  /** [T] u32: position of the token in its sequence. */
  readonly positions: Tensor;
  /** [T] u32: row of the self-attention cache that takes the token's key and value. */
  readonly cacheRows: Tensor;
  /** One tile per row: the keys of its sequence up to its own. */
  readonly selfTiles: Tiles;
  /** Rows of one window share a tile: the window's keys. */
  readonly crossTiles: Tiles;
  /** [B] u32: rows that give logits. */
  readonly sampledRows: Tensor;
  readonly rows: number;
  readonly samples: number;
}

/**
 * Key and value cache of the decoder, by layer: [rows, 2 C], key then value. A slot holds one window and its `lanes` transcripts. Slots are
 * added by growDecoderCache.
 */
export interface DecoderCache {
  slots: number;
  readonly lanes: number;
  /** Self-attention rows per lane. */
  readonly selfRows: number;
  /** Cross-attention rows per slot. */
  readonly crossRows: number;
  self: readonly Tensor[];
  /** Cross-attention caches; textures where attention reads those faster. */
  cross: readonly Tensor[];
  readonly crossInTexels: boolean;
  /** [copies, 2 C]: scratch for copyCacheRows. */
  readonly moved: Tensor;
}

/** Bytes of one cache slot, for a window of up to `positions` encoder positions. */
export function decoderSlotBytes(config: WhisperConfig, lanes: number, positions: number): number {
  return config.decoder.layers * (crossRowsOf(positions) + lanes * config.targetPositions) * 2 * config.channels * 4;
}

/** Views start at multiples of 256 bytes. */
const crossRowsOf = (positions: number): number => alignUp(positions, 64);

/**
 * Allocates caches for `slots` windows of up to `positions` encoder positions, which may grow to `most` slots; `copies` is the most rows
 * that copyCacheRows copies at once.
 */
export function createDecoderCache(
  device: Device,
  config: WhisperConfig,
  {
    slots,
    most = slots,
    lanes,
    copies,
    positions = config.sourcePositions,
  }: { slots: number; most?: number; lanes: number; copies: number; positions?: number },
): DecoderCache {
  const width = 2 * config.channels;
  const crossRows = crossRowsOf(positions);
  const crossInTexels = cacheInTexels(device.caps, [most * crossRows, width], crossRows);
  const shape = { lanes, selfRows: config.targetPositions, crossRows, crossInTexels };
  const moved = device.tensor('moved cache rows', 'f32', [copies, width]);
  return { ...shape, moved, ...slotsOf(device, shape, { layers: config.decoder.layers, width, slots }) };
}

function slotsOf(
  device: Device,
  { lanes, selfRows, crossRows, crossInTexels }: Pick<DecoderCache, 'lanes' | 'selfRows' | 'crossRows' | 'crossInTexels'>,
  { layers, width, slots }: { layers: number; width: number; slots: number },
): DecoderSlots {
  const ofLayers = (make: (i: number) => Tensor): Tensor[] => Array.from({ length: layers }, (_, i) => make(i));
  const inBuffers = (name: string, rows: number): Tensor[] =>
    ofLayers((i) => device.tensor(`${name} cache ${i}`, 'f32', [slots * rows, width]));
  const inTexels = (): Tensor[] => ofLayers((i) => device.texels(`cross cache ${i}`, [slots * crossRows, width]));
  return { slots, self: inBuffers('self', lanes * selfRows), cross: crossInTexels ? inTexels() : inBuffers('cross', crossRows) };
}

/** Tensors of a cache's windows. */
export type DecoderSlots = Pick<DecoderCache, 'slots' | 'self' | 'cross'>;

/** Allocates `slots` slots for growDecoderCache. */
export function createDecoderSlots(device: Device, cache: DecoderCache, slots: number): DecoderSlots {
  return slotsOf(device, cache, { layers: cache.self.length, width: cache.self[0]!.shape[1]!, slots });
}

/** Frees slots. */
export function destroyDecoderSlots(device: Device, { self, cross }: DecoderSlots): void {
  device.destroy(...self, ...cross);
}

/** Moves a cache to these slots, which are more than it has. The contents are copied after all work submitted so far. */
export function growDecoderCache(device: Device, cache: DecoderCache, more: DecoderSlots): void {
  const { self, cross } = cache;
  const rec = device.record('more windows');
  self.forEach((tensor, i) => rec.copy(tensor, more.self[i]!));
  cross.forEach((tensor, i) => (cache.crossInTexels ? rec.copyTexels(tensor, more.cross[i]!) : rec.copy(tensor, more.cross[i]!)));
  rec.submit();
  destroyDecoderSlots(device, cache);
  Object.assign(cache, more);
}

/** Copies rows of the self-attention cache in every layer: self[layer][to[i]] = self[layer][from[i]]. No row may be in both lists. */
export function copyCacheRows(
  rec: Recorder,
  { cache: { self, moved }, from, to, rows }: { cache: DecoderCache; from: Tensor; to: Tensor; rows: number },
): void {
  for (const cache of self) {
    gatherRows(rec, { x: cache, indices: from, out: moved, rows });
    denseStore(rec, { x: moved, column: 0, slots: to, cache, rows });
  }
}

/** Activations of a decoder step. */
export interface DecoderWorkspace {
  readonly tokens: Tensor;
  readonly places: Tensor;
  /** [T, C]: the residual stream; each sublayer writes it to the next of the three. */
  readonly stream: readonly [Tensor, Tensor, Tensor];
  readonly normed: Tensor;
  /** [T, 3 C]. */
  readonly qkv: Tensor;
  readonly query: Tensor;
  readonly attended: Tensor;
  readonly ffn: Tensor;
  /** [B, C]. */
  readonly last: Tensor;
  readonly lastNormed: Tensor;
  /** [B, V]. */
  readonly logits: Tensor;
}

/** Allocates activations for up to `rows` rows, `samples` of them sampled. */
export function createDecoderWorkspace(device: Device, config: WhisperConfig, rows: number, samples: number): DecoderWorkspace {
  const { channels: C, vocabulary, decoder } = config;
  const f32 = (name: string, shape: readonly number[]): Tensor => device.tensor(`decoder ${name}`, 'f32', shape);
  return {
    tokens: f32('tokens', [rows, C]),
    places: f32('places', [rows, C]),
    stream: [f32('stream 0', [rows, C]), f32('stream 1', [rows, C]), f32('stream 2', [rows, C])],
    normed: f32('normed', [rows, C]),
    qkv: f32('qkv', [rows, 3 * C]),
    query: f32('query', [rows, C]),
    attended: f32('attended', [rows, C]),
    ffn: f32('ffn', [rows, decoder.ffn]),
    last: f32('last', [samples, C]),
    lastNormed: f32('last normed', [samples, C]),
    logits: f32('logits', [samples, vocabulary]),
  };
}

export interface DecoderArgs {
  readonly config: WhisperConfig;
  readonly weights: WhisperWeights;
  readonly workspace: DecoderWorkspace;
  readonly cache: DecoderCache;
  readonly input: DecoderInput;
}

/** Appends a decoder step: stores the keys and values of all rows, and leaves the sampled rows' logits [B, V] in workspace.logits. */
export function decode(rec: Recorder, args: DecoderArgs): void {
  const { weights, workspace: ws, input } = args;
  const { decoder } = weights;
  const { samples } = input;
  decodeLayers(rec, args);
  gatherRows(rec, { x: ws.stream[0], indices: input.sampledRows, out: ws.last, rows: samples });
  layerNorm(rec, { x: ws.last, ...decoder.norm, out: ws.lastNormed, eps: LAYER_NORM_EPS, rows: samples });
  linear(rec, { x: ws.lastNormed, weight: decoder.tokens, out: ws.logits, rows: samples });
}

/**
 * Appends all layers, without logits. `attended` is called after each layer's cross-attention, when its queries [T, C] are in
 * workspace.query.
 */
export function decodeLayers(
  rec: Recorder,
  { config, weights: { decoder }, workspace: ws, cache, input }: DecoderArgs,
  attended?: (layer: number) => void,
): void {
  const { rows } = input;
  embedding(rec, { ids: input.ids, table: decoder.tokens, out: ws.tokens, rows });
  embedding(rec, { ids: input.positions, table: decoder.positions, out: ws.places, rows });
  add(rec, { a: ws.tokens, b: ws.places, out: ws.stream[0], count: rows * config.channels });
  decoder.layers.forEach((layer, i) => {
    selfAttention(rec, config, layer, ws, cache, input, i);
    crossAttention(rec, config, layer, ws, cache, input, i);
    attended?.(i);
    feedForward(rec, config, layer.ffn, { x: ws.stream[2], normed: ws.normed, ffn: ws.ffn, out: ws.stream[0], rows });
  });
}

/** stream[1] = stream[0] + self-attention. */
function selfAttention(
  rec: Recorder,
  { channels: C, decoder: { heads } }: WhisperConfig,
  { self }: DecoderLayer,
  ws: DecoderWorkspace,
  cache: DecoderCache,
  { rows, cacheRows, selfTiles }: DecoderInput,
  index: number,
): void {
  const tensor = cache.self[index]!;
  layerNorm(rec, { x: ws.stream[0], ...self.norm, out: ws.normed, eps: LAYER_NORM_EPS, rows });
  linear(rec, { x: ws.normed, ...self.qkv, out: ws.qkv, rows });
  denseStore(rec, { x: ws.qkv, column: C, slots: cacheRows, cache: tensor, rows });
  const keyValue = { k: { tensor }, v: { tensor, column: C }, over: selfTiles };
  denseAttention(rec, { q: { tensor: ws.qkv }, ...keyValue, out: ws.attended, heads, headDim: C / heads });
  linear(rec, { x: ws.attended, ...self.out, residual: ws.stream[0], out: ws.stream[1], rows });
}

/** stream[2] = stream[1] + cross-attention over the window. */
function crossAttention(
  rec: Recorder,
  { channels: C, decoder: { heads } }: WhisperConfig,
  { cross }: DecoderLayer,
  ws: DecoderWorkspace,
  cache: DecoderCache,
  { rows, crossTiles }: DecoderInput,
  index: number,
): void {
  const tensor = cache.cross[index]!;
  layerNorm(rec, { x: ws.stream[1], ...cross.norm, out: ws.normed, eps: LAYER_NORM_EPS, rows });
  linear(rec, { x: ws.normed, ...cross.query, out: ws.query, rows });
  const keyValue = { k: { tensor }, v: { tensor, column: C }, over: crossTiles };
  denseAttention(rec, { q: { tensor: ws.query }, ...keyValue, out: ws.attended, heads, headDim: C / heads });
  linear(rec, { x: ws.attended, ...cross.out, residual: ws.stream[1], out: ws.stream[2], rows });
}
