import { EngineError, assert } from '../errors.ts';
import type { Remedy } from '../errors.ts';
import type { Caps } from '../gpu/caps.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Variant } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { pagePlace } from './weight-place.ts';
import { reduceFragment, reduceVariant } from './reduce.ts';
import type { StateCache } from './states.ts';

const WG = 64;

const SCALE_BYTES = 4;

/** Slot of a padding row, whose key and value are not stored. */
export const NO_SLOT = 0xffffffff;

/**
 * Element type of the KV cache: floats, or int8 with an f32 scale for each position of a head. Before int8 keys are quantised, a centre is
 * subtracted, four channels are kept apart and the rest are mixed by a rotation that queries go through too (kv/rope_kv_store_int8.wgsl),
 * so that a few large channels do not round the others away.
 */
export type KVType = 'f32' | 'f16' | 'int8';

/** Channels of a key that int8 pages keep apart: two pairs. A query carries as many more behind its own D channels. */
export const APART_CHANNELS = 4;

/** Number of pages allocated now, and the most that there may be. */
export interface PageRoom {
  pages: number;
  readonly limit: number;
}

/**
 * The KV cache: pages of every layer, allocated on demand up to `limit` (growKVCache). Keys are [P, K, D/4, pageSize, 4] and values [P, K,
 * pageSize, D/4, 4]. In storage textures eight adjacent channels share a texel (lib/store_pages_texels.wgsl). int8 pages are u32 words,
 * with pageSize words of scales behind each head.
 */
export interface KVCache extends PageRoom {
  readonly dtype: KVType;
  /** Pages of the sliding-window layers, which are numbered separately; absent in models without such layers. */
  readonly windows?: PageRoom | undefined;
  readonly pageSize: number;
  readonly layers: readonly KVLayer[];
  /** Recurrent states; absent in models without recurrent layers. */
  readonly states?: StateCache;
}

/** Key/value heads of a layer: K heads of D channels. */
export interface KVHeads {
  readonly kvHeads: number;
  readonly headDim: number;
  /** Sliding window: positions that a row attends to, its own included; pages before it are released. Absent = full attention. */
  readonly window?: number | undefined;
  /**
   * Channels of a value, where these are the first ones of its key, so that there are no pages of values (multi-head latent attention);
   * absent = values are as large as keys, and have pages of their own.
   */
  readonly valuesInKeys?: number | undefined;
}

export interface KVLayer extends KVHeads {
  k: Tensor;
  /** Those of keys, where values are in these. */
  v: Tensor;
  /**
   * For int8 pages, [K, APART_CHANNELS + D] f32: how each head stores its keys, as (pair, unit, pair, unit) of the channels kept apart and
   * then the centre that is subtracted from keys (planKeys). All zeros, as at first: keys are stored without either.
   */
  readonly plan?: Tensor;
}

export interface KVShape {
  readonly layers: readonly KVHeads[];
  readonly pageSize: number;
  readonly dtype: KVType;
}

/** Splits the layers into those with full attention and those with a sliding window. */
export function byWindow({ layers, ...rest }: KVShape): { readonly whole: KVShape; readonly windowed: KVShape } {
  const of = (has: boolean): KVShape => ({ ...rest, layers: layers.filter(({ window }) => (window !== undefined) === has) });
  return { whole: of(false), windowed: of(true) };
}

/** The same layers for sequences of at most `context` positions: a window that is no shorter is dropped. */
export function withinContext(layers: readonly KVHeads[], context: number): readonly KVHeads[] {
  return layers.map((layer) => (layer.window === undefined || layer.window < context ? layer : { ...layer, window: undefined }));
}

/** The largest sliding window of any layer; undefined where there is none. */
export function largestWindow({ layers }: Pick<KVShape, 'layers'>): number | undefined {
  const windows = layers.flatMap(({ window }) => window ?? []);
  return windows.length > 0 ? Math.max(...windows) : undefined;
}

/** Bytes of one page: `all` over the keys and values of all layers, `largest` in the largest single buffer. */
export function pageBytes(shape: KVShape): { readonly all: number; readonly largest: number } {
  const { layers, pageSize, dtype } = shape;
  const channel = dtype === 'f16' ? 2 : 4;
  const bytes = layers.map(({ kvHeads, headDim }) => kvHeads * pageSize * (dtype === 'int8' ? headDim + SCALE_BYTES : headDim * channel)); // prettier-ignore
  const sides = layers.map(({ valuesInKeys }) => (valuesInKeys === undefined ? 2 : 1));
  return { all: bytes.reduce((sum, one, i) => sum + sides[i]! * one, 0), largest: Math.max(0, ...bytes) };
}

/**
 * What a software adapter allocates first, since its memory is the host's: about this many bytes of pages, and at least this many tokens.
 */
const FIRST_BYTES = 2 * 2 ** 20;
const FIRST_TOKENS = 256;

/** Pages allocated at first: all `limit` pages on a GPU; on a software adapter few, which grow with use (growKVCache). */
export function firstPages({ software }: Pick<Caps, 'software'>, shape: KVShape, limit: number): number {
  if (!software) return limit;
  const few = Math.floor(FIRST_BYTES / Math.max(1, pageBytes(shape).all));
  return Math.min(limit, Math.max(few, ceilDiv(FIRST_TOKENS, shape.pageSize)));
}

/**
 * Allocates a KV cache of `pages` pages that may grow to `limit`; `windows` says the same of the sliding-window layers, by default with the
 * same numbers. Keys and values of each layer are buffers of their own, so that each stays below the adapter's binding limit; throws
 * EngineError('out_of_memory') where one cannot.
 */
export function createKVCache(
  device: Device,
  shape: KVShape,
  limit: number,
  pages = limit,
  windows: Readonly<PageRoom> = { limit, pages },
): KVCache {
  const { pageSize, dtype } = shape;
  expectStorable(shape);
  const { whole, windowed } = byWindow(shape);
  for (const [bytes, most] of [
    [pageBytes(whole).largest, limit],
    [pageBytes(windowed).largest, windows.limit],
  ] as const) {
    if (most * bytes <= device.caps.maxBindingBytes) continue;
    throw new EngineError('out_of_memory', `${most} KV pages take ${most * bytes} bytes a layer; this adapter binds ${device.caps.maxBindingBytes}`); // prettier-ignore
  }
  return {
    dtype,
    pages,
    limit,
    windows: windowed.layers.length > 0 ? { ...windows } : undefined,
    pageSize,
    layers: shape.layers.map((heads, i) => ({
      ...heads,
      ...pagesOf(device, shape, heads, i, heads.window === undefined ? { pages, limit } : windows),
      ...(dtype === 'int8' && { plan: device.tensor(`key plan ${i}`, 'f32', [heads.kvHeads, APART_CHANNELS + heads.headDim]) }),
    })),
  };
}

/** Throws EngineError('unsupported') where pages of this type cannot hold a layer's keys. */
export function expectStorable({ layers, dtype }: KVShape): void {
  if (dtype !== 'int8' || layers.every(({ valuesInKeys }) => valuesInKeys === undefined)) return;
  // The rotation that spreads a key's channels would have to be undone for its value.
  const floats: Remedy = { does: 'store them as floats', settings: [{ name: 'kvCacheDtype', value: 'f16' }] };
  throw new EngineError('unsupported', 'keys that are values too (multi-head latent attention) cannot be stored in bytes', { remedies: [floats] }); // prettier-ignore
}

function pagesOf(
  device: Device,
  { pageSize, dtype }: Pick<KVShape, 'pageSize' | 'dtype'>,
  { kvHeads, headDim, valuesInKeys }: KVHeads,
  layer: number,
  { pages, limit }: PageRoom,
): Pick<KVLayer, 'k' | 'v'> {
  const bytes = limit * pageBytes({ layers: [{ kvHeads, headDim }], pageSize, dtype }).largest;
  // Values that are channels of keys lie across the texels.
  const inTexture = valuesInKeys === undefined && pagePlace(device.caps, dtype, headDim, bytes) === 'texture';
  const rows = dtype === 'int8' ? (headDim + SCALE_BYTES) / 4 : headDim;
  const make = (label: string): Tensor =>
    inTexture
      ? device.texels(label, [pages, kvHeads, headDim / 2, pageSize])
      : device.tensor(label, dtype === 'int8' ? 'u32' : dtype, [pages, kvHeads, rows, pageSize]);
  const k = make(`k pages ${layer}`);
  return { k, v: valuesInKeys === undefined ? make(`v pages ${layer}`) : k };
}

/** Whether the first `needed` pages, and the first `neededWindows` pages of sliding-window layers, are allocated. */
export function hasPages({ pages, windows }: KVCache, needed: number, neededWindows: number): boolean {
  return needed <= pages && neededWindows <= (windows?.pages ?? neededWindows);
}

/**
 * Grows the KV cache to hold the first `needed` pages, and `neededWindows` pages of sliding-window layers: at least doubling what is there,
 * up to the limit. The contents are copied after all work submitted so far. Returns whether pages moved to new tensors: plans captured over
 * the old ones are then stale.
 */
export function growKVCache(device: Device, kv: KVCache, needed: number, neededWindows = 0): boolean {
  const grown = growRoom(device, kv, kv, needed, false);
  return (kv.windows !== undefined && growRoom(device, kv, kv.windows, neededWindows, true)) || grown;
}

function growRoom(device: Device, kv: KVCache, room: PageRoom, needed: number, windowed: boolean): boolean {
  if (needed <= room.pages) return false;
  assert(needed <= room.limit, `${needed} KV pages are asked for, there are at most ${room.limit}`);
  room.pages = Math.min(room.limit, Math.max(needed, 2 * room.pages));
  kv.layers.forEach((layer, i) => {
    if ((layer.window !== undefined) !== windowed) return;
    const rec = device.record('more KV pages');
    const more = pagesOf(device, kv, layer, i, room);
    for (const side of layer.v === layer.k ? (['k'] as const) : (['k', 'v'] as const)) {
      if (layer[side].texture) rec.copyTexels(layer[side], more[side]);
      else rec.copy(layer[side], more[side]);
    }
    rec.submit();
    device.destroy(...new Set([layer.k, layer.v]));
    Object.assign(layer, more);
  });
  return true;
}

/** WGSL fragment that reads and writes the elements of pages (int8 pages: that reads them). */
export function kvFragment(variant: Variant): string {
  return `lib/kv_${variant.storage ?? 'f32'}.wgsl`;
}

/** The part of a kernel variant that depends on whether pages are textures. */
export function pagesVariant({ k }: Pick<KVLayer, 'k'>): Pick<Variant, 'textures'> {
  return k.texture ? { textures: ['k_pages', 'v_pages'] } : {};
}

/** WGSL fragment that stores into pages. */
export function storeFragment({ textures }: Variant): string {
  return textures ? 'lib/store_pages_texels.wgsl' : 'lib/store_pages.wgsl';
}

export const ROPE_KV_STORE = defineKernel({
  file: 'kv/rope_kv_store.wgsl',
  fragments: (v) => [kvFragment(v), 'lib/turned.wgsl', 'lib/rope_store.wgsl', storeFragment(v)],
  bindings: { qkv: 'read', cos_sin: 'read', positions: 'read', slots: 'read', q: 'write', k_pages: 'update', v_pages: 'update' },
  params: { heads: 'u32', kv_heads: 'u32', new_heads: 'u32' },
  overrides: { WG: 'u32', D8: 'u32' },
});

export const ROPE_KV_STORE_INT8 = defineKernel({
  file: 'kv/rope_kv_store_int8.wgsl',
  fragments: (v) => [kvFragment(v), reduceFragment(v)],
  consts: ['PAGE'],
  bindings: {
    qkv: 'read',
    cos_sin: 'read',
    positions: 'read',
    slots: 'read',
    plan: 'read',
    q: 'write',
    k_pages: 'update',
    v_pages: 'update',
  },
  params: ROPE_KV_STORE.spec.params,
  overrides: { WG: 'u32', D8: 'u32', P: 'u32' },
});

export interface RopeKVStoreArgs {
  /** [T, (H + 2 K) D]: the merged projection; [T, H D] with `queriesOnly`. */
  readonly qkv: Tensor;
  /** Rotates queries only: the layer reads the keys and values of another layer's pages. */
  readonly queriesOnly?: boolean | undefined;
  /** From ropeTable. */
  readonly cosSin: Tensor;
  /** [T] u32. */
  readonly positions: Tensor;
  /** [T] u32: page * pageSize + offset, NO_SLOT for padding. */
  readonly slots: Tensor;
  /**
   * [T, H D], or [T, H (D + APART_CHANNELS)] over int8 pages: rotated queries, in the form in which attention over these pages reads them.
   */
  readonly q: Tensor;
  readonly kv: KVCache;
  readonly layer: number;
  readonly heads: number;
  readonly rows: number;
}

/** Applies rotary embeddings to queries and keys, and stores keys and values in their pages. */
export function ropeKVStore(rec: Recorder, args: RopeKVStoreArgs): void {
  const { qkv, queriesOnly = false, cosSin, positions, slots, q, kv, layer, heads, rows } = args;
  const { pageSize, dtype } = kv;
  const { headDim, kvHeads } = kv.layers[layer]!;
  assert(headDim % 8 === 0, `rope_kv_store: head dim ${headDim}, expected a multiple of 8`);
  const pages = kv.layers[layer]!;
  const D8 = headDim / 8;
  const columns = headDim + (dtype === 'int8' ? APART_CHANNELS : 0);
  assert(q.size >= rows * heads * columns, `rope_kv_store: ${q.label} [${q.shape.join(', ')}] for ${rows} rows of ${heads} x ${columns}`);
  const bindings = { qkv, cos_sin: cosSin, positions, slots, q, k_pages: pages.k, v_pages: pages.v };
  const newHeads = queriesOnly ? 0 : kvHeads;
  const params = { heads, kv_heads: kvHeads, new_heads: newHeads };
  if (dtype === 'int8') {
    const { wg, variant } = reduceVariant(rec.caps, D8);
    const consts = { PAGE: pageSize, ...variant.consts };
    rec.dispatch(ROPE_KV_STORE_INT8, { ...variant, storage: dtype, consts, overrides: { WG: wg, D8, P: D8 & -D8 } }, { ...bindings, plan: pages.plan! }, params, [heads + newHeads, rows]); // prettier-ignore
    return;
  }
  // Storing whole texels exchanges pairs between invocations by subgroup shuffles, which only texture pages do.
  const inTextures = { ...pagesVariant(pages), subgroups: pages.k.texture !== undefined };
  const variant = { storage: dtype, consts: { PAGE: pageSize }, overrides: { WG, D8 }, ...inTextures };
  rec.dispatch(ROPE_KV_STORE, variant, bindings, params, [ceilDiv((heads + newHeads) * D8, WG), rows]);
}
