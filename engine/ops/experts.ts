/**
 * Mixtures of experts: each row is multiplied by the weights of the `k` experts that a router chose for it. A pair is a row with one of its
 * experts; pair t k + j is row t with its j-th. Routes stay on the device, so a captured plan holds for any routes.
 */
import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import { foldedRows } from '../gpu/recorder.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv, sizeOf } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import { tileOn } from './few-rows.ts';
import { weightFragments, weightVariant } from './weight.ts';
import type { LinearWeight } from './weight.ts';

export const ROUTE_ROWS = defineKernel({
  file: 'experts/route_rows.wgsl',
  bindings: { logits: 'read', bias: 'read', chosen: 'write', shares: 'write' },
  params: { rows: 'u32', experts: 'u32', k: 'u32', stride: 'u32', groups: 'u32', kept_groups: 'u32', cutoff: 'f32' },
  overrides: { WG: 'u32', SIGMOID: 'bool', HAS_BIAS: 'bool', HAS_GROUPS: 'bool', SPARSE: 'bool' },
});

export const GROUP_ROWS = defineKernel({
  file: 'experts/group_rows.wgsl',
  consts: ['EXPERTS', 'TILE_M'],
  bindings: { chosen: 'read', tile_experts: 'write', tile_pairs: 'write' },
  params: { pairs: 'u32', tiles: 'u32', first_expert: 'u32', experts: 'u32' },
  overrides: { WG: 'u32' },
});

export const EXPERT_LINEAR = defineKernel({
  file: 'experts/expert_linear.wgsl',
  fragments: (v) => weightFragments(v),
  consts: ['TILE_M', 'TILE_N'],
  bindings: { x: 'read', weight: 'read', tile_experts: 'read', tile_pairs: 'read', bias: 'read', out: 'write' },
  params: {
    pairs: 'u32', tiles: 'u32', n: 'u32', n_weight: 'u32', k4: 'u32', x_share: 'u32', segment: 'u32', segment_step: 'u32', first_expert: 'u32', experts: 'u32',
    part_first: 'u32', part_count: 'u32',
  }, // prettier-ignore
  overrides: { WG: 'u32', HAS_TILES: 'bool', HAS_BIAS: 'bool' },
});

export const COMBINE_ROWS = defineKernel({
  file: 'experts/combine_rows.wgsl',
  bindings: {
    y: 'read',
    chosen: 'read',
    shares: 'read',
    residual: 'read',
    shared_rows: 'read',
    gates: 'read',
    scales: 'read',
    out: 'write',
  },
  params: {
    c4: 'u32',
    k: 'u32',
    first_expert: 'u32',
    experts: 'u32',
    scale: 'f32',
    floor: 'f32',
    least: 'f32',
    gate_stride: 'u32',
    gate_column: 'u32',
  },
  overrides: { WG: 'u32', NORMALISED: 'bool', HAS_RESIDUAL: 'bool', HAS_SHARED: 'bool', HAS_SCALES: 'bool' },
});

const WG = 64;
/** Invocations of the one workgroup that sorts pairs. */
const GROUP_WG = 256;
/** Pairs per tile. */
export const PAIRS_PER_TILE = 4;
/** Groups that ROUTE_ROWS has room for, more than any model has: bits of a word. */
export const MOST_GROUPS = 32;

/** The experts of a layer. */
export interface ExpertShape {
  readonly count: number;
  /** Experts per row, k. */
  readonly perRow: number;
  /** Range of the experts that this rank holds. */
  readonly held: Range;
}

/** The experts that the rows of a step are routed to. Tensors are allocated for the largest step. */
export interface Routes {
  readonly shape: ExpertShape;
  /** [T k] u32: the expert of each pair. */
  readonly chosen: Tensor;
  /** [T k] f32: the expert's share: its probability among all experts, or the sigmoid of its logit. */
  readonly shares: Tensor;
  /** [tiles] u32, and [tiles, PAIRS_PER_TILE] u32: pairs sorted by expert (group_rows.wgsl). */
  readonly tileExperts: Tensor;
  readonly tilePairs: Tensor;
}

/** Allocates routes for at most `rows` rows. */
export function createRoutes(
  make: (label: string, dtype: 'f32' | 'u32', shape: readonly number[]) => Tensor,
  shape: ExpertShape,
  rows: number,
): Routes {
  const pairs = rows * shape.perRow;
  const tiles = tilesOf(shape, pairs);
  return {
    shape,
    chosen: make('chosen experts', 'u32', [pairs]),
    shares: make('expert shares', 'f32', [pairs]),
    tileExperts: make('tile experts', 'u32', [tiles]),
    tilePairs: make('tile pairs', 'u32', [tiles, PAIRS_PER_TILE]),
  };
}

/** Most tiles that `pairs` pairs take: each expert may leave one partly filled. */
function tilesOf({ held }: ExpertShape, pairs: number): number {
  return Math.min(pairs, ceilDiv(pairs, PAIRS_PER_TILE) + sizeOf(held));
}

/** Whether pairs are sorted into tiles. With no more pairs than experts few share one, so each pair is computed by itself. */
function hasTiles({ count }: ExpertShape, pairs: number): boolean {
  return pairs > count;
}

export interface RouteArgs {
  /** [T, E], or more columns. */
  readonly logits: Tensor;
  readonly routes: Routes;
  readonly rows: number;
  /** Shares are sigmoids of the logits; default: a softmax over all experts. */
  readonly sigmoid?: boolean | undefined;
  /** [E]: bias added to shares for choosing experts only. */
  readonly bias?: Tensor | undefined;
  /** Absent = a row may have any expert. */
  readonly groups?: ExpertGroups | undefined;
  /**
   * An expert's share is its probability among those that are chosen no earlier and whose logits are at most this part of the larger of its
   * own logit and their sizes less; absent = among all.
   */
  readonly cutoff?: number | undefined;
}

/**
 * Groups of as many adjacent experts each, of which a row has those with the largest sums of their best two scores; where shares are no
 * sigmoids, those with the best scores.
 */
export interface ExpertGroups {
  readonly count: number;
  readonly kept: number;
}

/** Fills `routes` from router logits: the k largest of each row, with a bias of its shares; of equal ones the first. */
export function routeRows(rec: Recorder, { logits, routes, rows, sigmoid = false, bias, groups, cutoff }: RouteArgs): void {
  const { shape, chosen, shares } = routes;
  const { count: experts, perRow: k } = shape;
  const stride = logits.shape[1] ?? 0;
  assert(stride >= experts && k <= experts, `route_rows: logits of ${stride} experts, ${k} of ${experts} chosen`);
  assert(sigmoid || !bias || !groups, 'route_rows: groups and a bias of shares that are no sigmoids');
  assert(cutoff === undefined || (!sigmoid && !bias && !groups), 'route_rows: a cutoff of shares that are no softmax over all');
  const { count = 1, kept = 1 } = groups ?? {};
  assert(experts % count === 0 && count <= MOST_GROUPS, `route_rows: ${count} groups of ${experts} experts`);
  assert(k <= (experts / count) * kept, `route_rows: ${k} experts of ${kept} groups`);
  const overrides = {
    WG,
    SIGMOID: sigmoid ? 1 : 0,
    HAS_BIAS: bias ? 1 : 0,
    HAS_GROUPS: groups ? 1 : 0,
    SPARSE: cutoff === undefined ? 0 : 1,
  };
  const params = { rows, experts, k, stride, groups: count, kept_groups: kept, cutoff: cutoff ?? 0 };
  rec.dispatch(ROUTE_ROWS, { overrides }, { logits, bias: bias ?? logits, chosen, shares }, params, [ceilDiv(experts, WG), rows]);
  if (hasTiles(shape, rows * k)) groupPairs(rec, routes, rows * k);
}

/** Sorts the first `pairs` pairs by expert into tiles. */
export function groupPairs(rec: Recorder, { shape, chosen, tileExperts, tilePairs }: Routes, pairs: number): void {
  const { held } = shape;
  const params = { pairs, tiles: tilesOf(shape, pairs), first_expert: held.from, experts: sizeOf(held) };
  const variant = {
    consts: { EXPERTS: sizeOf(held), TILE_M: PAIRS_PER_TILE },
    overrides: { WG: Math.min(GROUP_WG, rec.caps.maxInvocations) },
  };
  rec.dispatch(GROUP_ROWS, variant, { chosen, tile_experts: tileExperts, tile_pairs: tilePairs }, params, [1]);
}

export interface ExpertLinearArgs {
  /** [T, K] f32, a row for each row of the batch; or, with `ofPairs`, [T k, K], a row for each pair. */
  readonly x: Tensor;
  /** [segments, held experts, segment, K] as one matrix of rows. */
  readonly weight: LinearWeight;
  /** f32, one value for each row of that matrix; absent = none. */
  readonly bias?: Tensor | undefined;
  /** Matrices per expert, whose outputs follow each other in `out`; default 1. */
  readonly segments?: number;
  readonly routes: Routes;
  /** [T k, segments * segment] f32. */
  readonly out: Tensor;
  /** Whether x has a row for each pair. */
  readonly ofPairs: boolean;
  /** Rows of the batch: T. */
  readonly rows: number;
}

/**
 * out[p] = x W[expert of p]^T + bias[expert of p] for every pair whose expert is held here; other rows of `out` are left as they are. Sums
 * are in the same order for all rows.
 */
export function expertLinear(rec: Recorder, { x, weight, bias, segments = 1, routes, out, ofPairs, rows }: ExpertLinearArgs): void {
  const { shape, chosen, tileExperts, tilePairs } = routes;
  const { perRow, held } = shape;
  const experts = sizeOf(held);
  const pairs = rows * perRow;
  const width = x.shape[1] ?? 0;
  const n = out.shape[1] ?? 0;
  assert(n * experts === weight.outFeatures, `expert_linear: ${n} outputs of ${experts} experts, weight ${weight.outFeatures}`);
  assert(!bias || bias.size === weight.outFeatures, `expert_linear: a bias of ${bias?.size} numbers, weight ${weight.outFeatures}`);
  const tiles = hasTiles(shape, pairs)
    ? { count: tilesOf(shape, pairs), experts: tileExperts, pairs: tilePairs }
    : { count: pairs, experts: chosen, pairs: undefined };
  pairLinear(rec, { x, width, weight, bias, segments, out, columns: n, pairs, share: ofPairs ? 1 : perRow, held, tiles });
}

/** Pairs in tiles, each of one expert. */
interface PairTiles {
  readonly count: number;
  /** [tiles] u32. */
  readonly experts: Tensor;
  /** [tiles, PAIRS_PER_TILE] u32; absent = each pair is its own tile. */
  readonly pairs: Tensor | undefined;
}

export interface PairLinearArgs extends Pick<ExpertLinearArgs, 'x' | 'weight' | 'bias' | 'segments' | 'out'> {
  /** Columns of a row of x, and of a pair's outputs. */
  readonly width: number;
  readonly columns: number;
  readonly pairs: number;
  /** Consecutive pairs that share a row of x. */
  readonly share: number;
  /** Range of the experts that `weight` has. */
  readonly held: Range;
  readonly tiles: PairTiles;
}

/** expertLinear of pairs that are in tiles already. */
export function pairLinear(rec: Recorder, args: PairLinearArgs): void {
  const { x, width, weight, bias, segments = 1, out, columns: n, pairs, share, held, tiles: cut } = args;
  const experts = sizeOf(held);
  assert(width === weight.inFeatures && width % 4 === 0, `expert_linear: x has ${width} columns, weight ${weight.inFeatures}`);
  const tiled = cut.pairs !== undefined;
  const { wg, tileN } = tileOn(rec.caps);
  const overrides = { WG: wg, HAS_TILES: tiled ? 1 : 0, HAS_BIAS: bias ? 1 : 0 };
  const tiles = cut.count;
  const grid = [ceilDiv(n, wg * tileN), ...foldedRows(tiles)];
  const common = {
    pairs, tiles, n, k4: width / 4, x_share: share, segment: n / segments, segment_step: (n / segments) * experts, first_expert: held.from, experts,
  }; // prettier-ignore
  for (const part of weight.parts) {
    const { weight: stored, first, count, padded } = part;
    const { consts, ...rest } = weightVariant(part);
    const variant = { ...rest, consts: { TILE_M: tiled ? PAIRS_PER_TILE : 1, TILE_N: tileN, ...consts }, overrides };
    const bindings = {
      x,
      weight: stored,
      tile_experts: cut.experts,
      tile_pairs: cut.pairs ?? cut.experts,
      bias: bias ?? x,
      out,
    };
    rec.dispatch(EXPERT_LINEAR, variant, bindings, { ...common, n_weight: padded, part_first: first, part_count: count }, grid);
  }
}

export interface CombineArgs {
  /** [T k, C]: the experts' output for each pair. */
  readonly y: Tensor;
  readonly routes: Routes;
  readonly shares?: ShareRule;
  /** [E]: factor of each expert's share, applied after the rule; absent = none. */
  readonly scales?: Tensor | undefined;
  /** Output of the shared expert, [T, C], and the logit whose sigmoid is its share, a column of [T, ..]; absent = there is none. */
  readonly shared?: { readonly rows: Tensor; readonly gates: Tensor; readonly column: number } | undefined;
  /** [T, C], a tensor other than `out`. */
  readonly residual: Tensor | undefined;
  /** [T, C]. */
  readonly out: Tensor;
  readonly rows: number;
}

/** How the shares of a row's experts are turned into weights. */
export interface ShareRule {
  /** Divides the shares by their sum. */
  readonly normalised?: boolean;
  /** Added to that sum; default 0. */
  readonly floor?: number;
  /** The least that they are divided by; default 0. */
  readonly least?: number;
  /** Factor of the shares; default 1. */
  readonly scale?: number;
}

/** out = residual + the weighted sum of a row's experts, of those that are held here, and of the shared expert. */
export function combineRows(rec: Recorder, { y, routes, shares: rule = {}, scales, shared, residual, out, rows }: CombineArgs): void {
  const { shape, chosen, shares } = routes;
  const { normalised = false, floor = 0, least = 0, scale = 1 } = rule;
  const columns = out.shape[1] ?? 0;
  assert(columns % 4 === 0 && y.shape[1] === columns, `combine_rows: ${y.shape[1]} columns into ${columns}, expected a multiple of 4`);
  const overrides = {
    WG,
    NORMALISED: normalised ? 1 : 0,
    HAS_RESIDUAL: residual ? 1 : 0,
    HAS_SHARED: shared ? 1 : 0,
    HAS_SCALES: scales ? 1 : 0,
  };
  const gate = { gate_stride: shared?.gates.shape[1] ?? 0, gate_column: shared?.column ?? 0 };
  const params = {
    c4: columns / 4,
    k: shape.perRow,
    first_expert: shape.held.from,
    experts: sizeOf(shape.held),
    scale,
    floor,
    least,
    ...gate,
  };
  const bindings = {
    y,
    chosen,
    shares,
    residual: residual ?? y,
    shared_rows: shared?.rows ?? y,
    gates: shared?.gates ?? shares,
    scales: scales ?? shares,
    out,
  };
  rec.dispatch(COMBINE_ROWS, { overrides }, bindings, params, [ceilDiv(columns / 4, WG), rows]);
}
