import { EngineError, assert } from '../errors.ts';
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

/** Slot of a padding row: nothing is stored. */
export const NO_SLOT = 0xffffffff;

/**
 * Storage of keys and values: as they are, or as signed bytes with a scale for each position of a head. Queries and keys of int8 pages are rotated
 * alike, and a key loses a centre and keeps four channels apart (kv/rope_kv_store_int8.wgsl), so that a large channel does not round the others away.
 */
export type KVType = 'f32' | 'f16' | 'int8';

/** Channels of a key that int8 pages keep apart: two pairs. A query carries as many more behind its own. */
export const APART_CHANNELS = 4;

/** Pages there are now, and at most. */
export interface PageRoom {
  pages: number;
  readonly limit: number;
}

/**
 * The pages of every layer. They may be fewer than there may come to be (growKVCache). Keys [P, K, D/4, pageSize, 4], values [P, K, pageSize, D/4, 4]; in textures,
 * as u32, eight channels beside each other (lib/store_pages_texels.wgsl); int8: as u32, and pageSize words with scales behind each head.
 */
export interface KVCache extends PageRoom {
  readonly dtype: KVType;
  /** Of the layers that see a window only, whose pages have numbers of their own; absent = there are none. */
  readonly windows?: PageRoom | undefined;
  readonly pageSize: number;
  readonly layers: readonly KVLayer[];
  /** What recurrent layers keep of sequences, of a model that has any. */
  readonly states?: StateCache;
}

/** K heads of D channels. */
export interface KVHeads {
  readonly kvHeads: number;
  readonly headDim: number;
  /** Positions that a row sees, the last of which is its own: pages behind them are let go. Absent = all, and all pages stay. */
  readonly window?: number | undefined;
}

export interface KVLayer extends KVHeads {
  k: Tensor;
  v: Tensor;
  /**
   * Of int8 pages: [K, APART_CHANNELS + D] f32, how each head stores its keys: (pair, unit, pair, unit) of what is kept apart, and the centre that keys lose
   * first (planKeys). All zeros, as at first: keys are stored as they are.
   */
  readonly plan?: Tensor;
}

export interface KVShape {
  readonly layers: readonly KVHeads[];
  readonly pageSize: number;
  readonly dtype: KVType;
}

/** The heads of layers whose pages stay, and of those that see a window only. */
export function byWindow({ layers, ...rest }: KVShape): { readonly whole: KVShape; readonly windowed: KVShape } {
  const of = (has: boolean): KVShape => ({ ...rest, layers: layers.filter(({ window }) => (window !== undefined) === has) });
  return { whole: of(false), windowed: of(true) };
}

/** Layers for sequences of at most `context` positions: a window of as many is none. */
export function withinContext(layers: readonly KVHeads[], context: number): readonly KVHeads[] {
  return layers.map((layer) => (layer.window === undefined || layer.window < context ? layer : { ...layer, window: undefined }));
}

/** The largest window of layers that see a window only; undefined where there are none. */
export function largestWindow({ layers }: Pick<KVShape, 'layers'>): number | undefined {
  const windows = layers.flatMap(({ window }) => window ?? []);
  return windows.length > 0 ? Math.max(...windows) : undefined;
}

/** Bytes of one page: of all layers' keys and values, and in the largest of their buffers. */
export function pageBytes(shape: KVShape): { readonly all: number; readonly largest: number } {
  const { layers, pageSize, dtype } = shape;
  const channel = dtype === 'f16' ? 2 : 4;
  const bytes = layers.map(({ kvHeads, headDim }) => kvHeads * pageSize * (dtype === 'int8' ? headDim + SCALE_BYTES : headDim * channel)); // prettier-ignore
  return { all: 2 * bytes.reduce((sum, one) => sum + one, 0), largest: Math.max(0, ...bytes) };
}

/** Where memory is shared with everything else, pages are taken when they are used. At first there are this many bytes of them, and at least so many tokens. */
const FIRST_BYTES = 2 * 2 ** 20;
const FIRST_TOKENS = 256;

/** Pages of `limit` that are allocated at first: all on a GPU, which has its memory for that; few on a software adapter, where they are grown when used. */
export function firstPages({ software }: Pick<Caps, 'software'>, shape: KVShape, limit: number): number {
  if (!software) return limit;
  const few = Math.floor(FIRST_BYTES / Math.max(1, pageBytes(shape).all));
  return Math.min(limit, Math.max(few, ceilDiv(FIRST_TOKENS, shape.pageSize)));
}

/** Allocates `pages` of at most `limit` pages; one buffer a layer and side, so that a layer's share stays below the adapter's binding limit. Layers that see a window only get as many where `windows` does not say otherwise. */
export function createKVCache(
  device: Device,
  shape: KVShape,
  limit: number,
  pages = limit,
  windows: Readonly<PageRoom> = { limit, pages },
): KVCache {
  const { pageSize, dtype } = shape;
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

function pagesOf(
  device: Device,
  { pageSize, dtype }: Pick<KVShape, 'pageSize' | 'dtype'>,
  { kvHeads, headDim }: KVHeads,
  layer: number,
  { pages, limit }: PageRoom,
): Pick<KVLayer, 'k' | 'v'> {
  const bytes = limit * pageBytes({ layers: [{ kvHeads, headDim }], pageSize, dtype }).largest;
  const inTexture = pagePlace(device.caps, dtype, headDim, bytes) === 'texture';
  const rows = dtype === 'int8' ? (headDim + SCALE_BYTES) / 4 : headDim;
  const make = (label: string): Tensor =>
    inTexture
      ? device.texels(label, [pages, kvHeads, headDim / 2, pageSize])
      : device.tensor(label, dtype === 'int8' ? 'u32' : dtype, [pages, kvHeads, rows, pageSize]);
  return { k: make(`k pages ${layer}`), v: make(`v pages ${layer}`) };
}

/** Whether a step's first pages, and those of layers that see a window only, are all there. */
export function hasPages({ pages, windows }: KVCache, needed: number, neededWindows: number): boolean {
  return needed <= pages && neededWindows <= (windows?.pages ?? neededWindows);
}

/**
 * Makes room for the first `needed` pages, and `neededWindows` of layers that see a window only: at least twice as many as there are, up to the limit. What was stored is copied behind all work
 * submitted before. Returns whether the pages lie in new tensors, which plans captured over the old ones do not know.
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
    for (const side of ['k', 'v'] as const) {
      if (layer[side].texture) rec.copyTexels(layer[side], more[side]);
      else rec.copy(layer[side], more[side]);
    }
    rec.submit();
    device.destroy(layer.k, layer.v);
    Object.assign(layer, more);
  });
  return true;
}

/** The fragment that reads and writes a page's elements (of int8 pages: that reads them). */
export function kvFragment(variant: Variant): string {
  return `lib/kv_${variant.storage ?? 'f32'}.wgsl`;
}

/** What of a variant is decided by where pages lie. */
export function pagesVariant({ k }: Pick<KVLayer, 'k'>): Pick<Variant, 'textures'> {
  return k.texture ? { textures: ['k_pages', 'v_pages'] } : {};
}

/** The fragment that stores into pages. */
export function storeFragment({ textures }: Variant): string {
  return textures ? 'lib/store_pages_texels.wgsl' : 'lib/store_pages.wgsl';
}

export const ROPE_KV_STORE = defineKernel({
  file: 'kv/rope_kv_store.wgsl',
  fragments: (v) => [kvFragment(v), 'lib/rope_store.wgsl', storeFragment(v)],
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
  /** The pages are another layer's, whose keys and values they hold already. */
  readonly queriesOnly?: boolean | undefined;
  /** From ropeTable. */
  readonly cosSin: Tensor;
  /** [T] u32. */
  readonly positions: Tensor;
  /** [T] u32: page * pageSize + offset, NO_SLOT for padding. */
  readonly slots: Tensor;
  /** [T, H D], over int8 pages [T, H (D + APART_CHANNELS)]: rotated queries, as attention over these pages reads them. */
  readonly q: Tensor;
  readonly kv: KVCache;
  readonly layer: number;
  readonly heads: number;
  readonly rows: number;
}

/** Rotates queries and keys by their positions and puts keys and values into their pages. */
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
  // Handing pairs round takes subgroups; this kernel has no need to, but the fragment can.
  const inTextures = { ...pagesVariant(pages), subgroups: pages.k.texture !== undefined };
  const variant = { storage: dtype, consts: { PAGE: pageSize }, overrides: { WG, D8 }, ...inTextures };
  rec.dispatch(ROPE_KV_STORE, variant, bindings, params, [ceilDiv((heads + newHeads) * D8, WG), rows]);
}
