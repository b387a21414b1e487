/**
 * The forward pass of a decoder stack: its activations, and its dispatches in stages, cut where partial sums of tensor-parallel ranks are
 * added.
 */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { softCap } from '../../ops/activation.ts';
import { embedding } from '../../ops/embedding.ts';
import type { KVCache } from '../../ops/kv.ts';
import { linear } from '../../ops/linear.ts';
import { behindNorm, normedLinear, normedRows } from '../../ops/fused-linear.ts';
import { rmsNorm } from '../../ops/norm.ts';
import { gatherRows } from '../../ops/sample.ts';
import { alignUp, sizeOf } from '../../util/math.ts';
import type { Stage } from '../decoder.ts';
import type { ForwardInput } from '../forward-input.ts';
import type { Shard } from '../shard.ts';
import { attend, attentionWorkspace } from './attention.ts';
import { byTurns } from './by-turns.ts';
import { attendLatent, latentWorkspace } from './latent-attention.ts';
import { layerInputsWorkspace, recordLayerInput, recordLayerInputs } from './layer-inputs.ts';
import type { LayerInputsConfig } from './layer-inputs.ts';
import { PRE_NORMS, layerInputsConfig } from './stack-config.ts';
import type { DecoderFamily, DecoderStackConfig, Part } from './stack-config.ts';
import type { Layer, Weights, Workspace } from './stack-parts.ts';
import type { Vocabulary } from './vocabulary.ts';

/**
 * Allocates activations for `rows` rows of a batch, at most `logitRows` of them with logits; `kept` hidden states are kept for a draft
 * head.
 */
export function createWorkspace<W, S>(
  { mlp, norms = PRE_NORMS }: DecoderFamily<W, S>,
  device: Device,
  { config, shard, layers, tokens, isLast }: Part,
  rows: number,
  logitRows: number,
  kept = 0,
): Workspace<S> {
  const isHybrid = config.kinds?.some((kind) => kind.isHybrid) ?? false;
  const hasBranch = norms.afterAttention !== undefined || norms.afterMlp !== undefined || isHybrid;
  const make = (name: string, width: number, count = rows): Tensor => device.tensor(name, 'f32', [count, width]);
  const maker = byTurns(device);
  const shares = layers.slice(shard.layers.from, shard.layers.to);
  const attentions = distinct(shares.map(({ attention }) => attention), ({ widest }) => widest); // prettier-ignore
  const mlps = distinct(shares.map((share) => share.mlp), (share) => mlp.widest(config, share)); // prettier-ignore
  const inputs = layerInputsConfig(config);
  return {
    hidden: make('hidden', config.hidden),
    middle: make('middle', config.hidden),
    normed: make('normed', config.hidden),
    branch: hasBranch ? make('branch', config.hidden) : undefined,
    attention: new Map(config.latent ? [] : attentions.map((share) => [share, attentionWorkspace(maker, config, share, rows, logitRows)])),
    latent: new Map(
      config.latent ? attentions.map((share) => [share, latentWorkspace(device, config.latent!, share, rows, logitRows)]) : [],
    ),
    recurrent: config.recurrent?.workspace(device, rows, logitRows),
    mlp: new Map(mlps.map((share) => [share, mlp.workspace(maker, config, share, rows)])),
    layerInputs: inputs && layerInputsWorkspace(device, inputs, rows, logitRows),
    gathered: make('gathered hidden', config.hidden, logitRows),
    last: make('last', config.hidden, logitRows),
    finals: config.hasDraftHead ? finalRows(device, config.hidden, kept, rows) : undefined,
    logits: isLast ? make('logits', sizeOf(tokens), logitRows) : undefined,
  };
}

/** Kept hidden states are padded to a multiple of this many rows, since a view of a buffer must begin at an aligned offset. */
const KEPT_UNIT = 64;

/** Row in Workspace.finals.all where the hidden states of a pass begin, behind `kept` hidden states. */
export function firstFinal(kept: number): number {
  return alignUp(kept, KEPT_UNIT);
}

function finalRows(device: Device, hidden: number, kept: number, rows: number) {
  const first = firstFinal(kept);
  const all = device.tensor('final hidden', 'f32', [first + rows, hidden]);
  return { all, own: first > 0 ? all.rows(first, first + rows) : all };
}

/** The distinct shares, those with the largest tensors first: byTurns reuses the first buffer of each name. */
function distinct<Share>(shares: readonly Share[], size: (share: Share) => number): readonly Share[] {
  return [...new Set(shares)].sort((a, b) => size(b) - size(a));
}

/** The stages of a forward pass, in order. */
export function stages<W, S>(
  family: DecoderFamily<W, S>,
  { shard, tokens, config, isFirst, isLast }: Part,
  weights: Weights<W>,
  ws: Workspace<S>,
  input: ForwardInput,
  kv: KVCache,
): readonly Stage[] {
  const { eps, embeddingScale: scale } = config;
  const { rows, trace } = input;
  const firstId = shard.ranks > 1 ? { firstId: tokens.from } : {};
  const inputs = layerInputsConfig(config);
  const list = stageList(ws, shard, eps);
  const pass = { family, config, inputs, weights, ws, input, kv, list };
  if (isFirst) {
    list.add({ tensor: ws.hidden, rows }, (rec) => {
      const positions = weights.positions && { table: weights.positions, places: input.positions };
      embedding(rec, { ids: input.tokens, table: weights.embedding!, positions, out: ws.hidden, rows, scale, ...firstId });
      trace?.('embedding', ws.hidden);
      if (inputs) recordLayerInputs(rec, weights.layerInputs!, ws.layerInputs!, inputs, ws.hidden, input);
    });
  }
  let stream = ws.hidden;
  weights.layers.forEach((weight, layer) => {
    const ends = isLast && layer === weights.layers.length - 1;
    // In the last layer, rows without logits only store their keys and values.
    const indices = ends && !ws.finals ? input.logitIndices : undefined;
    const kept = indices ? input.logitRows : rows;
    // Gathered logit rows are not multiplied with subgroup matrices. With a draft head, where all rows are kept, they must give the same
    // bits.
    const promptFrom = ends ? undefined : input.promptFrom;
    stream = addLayer(pass, weight, { layer, indices, kept, promptFrom, stream, before: indices ? ws.gathered : stream });
  });
  if (isLast) list.add(undefined, (rec) => head(rec, weights, ws, config, input, stream));
  else list.finish();
  return list.stages;
}

/** What the layers of a forward pass share. */
interface Pass<W, S> {
  readonly family: DecoderFamily<W, S>;
  readonly config: DecoderStackConfig;
  readonly inputs: LayerInputsConfig | undefined;
  readonly weights: Weights<W>;
  readonly ws: Workspace<S>;
  readonly input: ForwardInput;
  readonly kv: KVCache;
  readonly list: ReturnType<typeof stageList>;
}

/** A layer's place in a forward pass. */
interface LayerStep {
  readonly layer: number;
  /** Rows that get an output; undefined = all. */
  readonly indices: Tensor | undefined;
  readonly kept: number;
  readonly promptFrom: number | undefined;
  /** The one of ws.hidden and ws.middle that has the residual stream before the layer; and that of the kept rows. */
  readonly stream: Tensor;
  readonly before: Tensor;
}

/** Adds the stages of a layer; returns the tensor that has the residual stream behind it. */
function addLayer<W, S>(pass: Pass<W, S>, weight: Layer<W>, step: LayerStep): Tensor {
  const { config, inputs, ws, list } = pass;
  const { layer, indices, kept, stream, before } = step;
  const { only, scale, attentionNorm, outputNorm } = weight;
  const other = stream === ws.hidden ? ws.middle : ws.hidden;
  const [between, end] = only === undefined ? [other, stream] : [before, other];
  const trace = (): void => pass.input.trace?.(`layer ${layer}`, end);
  if (only !== 'mlp') {
    list.addHalf({ norm: attentionNorm, before, out: other, kept }, (rec, residual, out) => {
      recordAttention(rec, pass, weight, step, { residual, out });
      if (only && !attentionNorm) trace();
    });
  }
  if (only !== 'attention') {
    // A per-layer embedding is added after both halves, and the layer's scale applies to the result.
    const fed = weight.input ? { out: ws.layerInputs!.before } : { out: end, scale };
    list.addHalf({ norm: outputNorm, before: between, kept, ...fed }, (rec, residual, out) => {
      recordMlp(rec, pass, weight, step, { x: config.isParallel ? before : between, residual, out });
      if (!outputNorm) trace();
    });
  }
  list.behind((rec) => {
    const place = { layer, scale, indices, kept, branch: ws.branch!, out: end };
    if (weight.input) recordLayerInput(rec, weight.input, ws.layerInputs!, inputs!, place);
    trace();
  });
  return end;
}

/** Where a half puts what it computes, and what is added to that. */
interface HalfOutput {
  readonly residual: Tensor | undefined;
  readonly out: Tensor;
}

/** Records attention, or the recurrent block in its place. */
function recordAttention<W, S>(
  rec: Recorder,
  { config, weights, ws, input, kv }: Pass<W, S>,
  { inputNorm: norm, inputShift, place, statePlace, attention, latent, recurrent, rope, window, share }: Layer<W>,
  { indices, kept, promptFrom, stream }: LayerStep,
  { residual, out }: HalfOutput,
): void {
  const { eps } = config;
  const { rows } = input;
  const given = behindNorm(rec, { x: stream, norm, eps, normed: ws.normed }, inputShift, rows);
  if (indices) gatherRows(rec, { x: stream, indices, out: ws.gathered, rows: kept });
  const step = { indices, kept, promptFrom };
  const isHybrid = recurrent !== undefined && attention !== undefined;
  const halfInput = isHybrid ? { ...given, x: normedRows(rec, given, rows), norm: undefined } : given;
  if (recurrent) {
    const x = normedRows(rec, halfInput, rows);
    const output = { residual, out: isHybrid ? ws.branch! : out };
    config.recurrent!.record(rec, recurrent, ws.recurrent, { ...step, ...output, x, eps, state: kv.states!.layers[statePlace]! }, input);
  }
  const own = { layer: place, cosSin: weights.cosSin.get(rope)!, scores: { ...config.scores, window } };
  if (latent) attendLatent(rec, latent, ws.latent.get(share.attention)!, { ...step, ...own, residual, out, input: given }, input, kv);
  if (attention) {
    const output = { residual: isHybrid ? ws.branch! : residual, out };
    attend(
      rec,
      attention,
      ws.attention.get(share.attention)!,
      share.attention,
      { ...step, ...own, ...output, input: halfInput },
      input,
      kv,
    );
  }
}

/** Records the MLP of x. */
function recordMlp<W, S>(
  rec: Recorder,
  { family, config, ws, input }: Pass<W, S>,
  { only, inputNorm, inputShift, mlpNorm, mlpShift, mlp, share }: Layer<W>,
  { indices, kept, promptFrom, stream }: LayerStep,
  { x, residual, out }: HalfOutput & { readonly x: Tensor },
): void {
  const { eps } = config;
  if (indices && only) gatherRows(rec, { x: stream, indices, out: ws.gathered, rows: kept });
  const isShared = config.isParallel === true;
  const [norm, shift] = isShared ? [inputNorm, inputShift] : [mlpNorm, mlpShift];
  // Halves that share a norm share their normed rows, unless the MLP has fewer.
  const isNormed = isShared && shift !== undefined && !indices;
  const half = { x: isNormed ? ws.normed : x, norm: isNormed ? undefined : norm, eps, normed: ws.normed };
  const { lora } = input;
  const ofKept = lora && { loras: indices ? lora.ofLogits : lora.loras, shrunk: lora.shrunk };
  const step = { input: behindNorm(rec, half, shift, kept), residual, out, rows: kept, promptFrom, lora: ofKept };
  family.mlp.record(rec, mlp!, ws.mlp.get(share.mlp)!, step);
}

/** Where a half of a layer puts its output: through `norm`, if there is one, added to `before`, times `scale`, into `out`. */
interface HalfPlace {
  readonly norm: Tensor | undefined;
  readonly before: Tensor;
  readonly out: Tensor;
  readonly kept: number;
  readonly scale?: number;
}

/**
 * Collects stages. The first rank adds the residual, so that the sum over ranks is the new hidden state. A norm after a half needs that sum
 * first: there the stage leaves the partial sums of the half alone, and the next stage begins with the norm and the residual.
 */
function stageList<S>(ws: Workspace<S>, { rank }: Shard, eps: number) {
  const stages: Stage[] = [];
  // What the previous stage leaves to be done once its partial sums are added.
  let settle: ((rec: Recorder) => void) | undefined;
  const add = (partial: Stage['partial'], record: (rec: Recorder) => void): void => {
    const first = settle;
    settle = undefined;
    stages.push({ ...(partial && { partial }), record: (rec) => (first?.(rec), record(rec)) });
  };
  return {
    stages,
    add,
    /** Adds a stage for out = residual + half; `record` leaves partial sums in the tensor that it is given. */
    addHalf({ norm, before, out, kept, scale }: HalfPlace, record: Half): void {
      const residual = rank === 0 && !norm ? before : undefined;
      const parts = norm ? ws.branch! : out;
      add({ tensor: parts, rows: kept }, (rec) => record(rec, residual, parts));
      if (norm) settle = (rec) => rmsNorm(rec, { x: parts, weight: norm, residual: before, scale, out, eps, rows: kept });
    },
    /** Appends work after the norm that follows the last half; no effect where there is none. */
    behind(record: (rec: Recorder) => void): void {
      const settled = settle;
      if (settled) settle = (rec) => (settled(rec), record(rec));
    },
    /** Makes a stage of work that is still left. */
    finish(): void {
      if (settle) add(undefined, () => {});
    },
  };
}

/** Records a half of a layer: parts = residual + f(hidden state), or a rank's partial sum of it. */
type Half = (rec: Recorder, residual: Tensor | undefined, parts: Tensor) => void;

/** ws.logits = the vocabulary head of the last layer's `logitRows` rows, which begin `hidden`. */
function head<S>(
  rec: Recorder,
  weights: Vocabulary,
  ws: Workspace<S>,
  { eps, logitSoftCap: cap }: DecoderStackConfig,
  input: ForwardInput,
  hidden: Tensor,
): void {
  const { logitRows: rows, trace } = input;
  const { norm, shift, weight, bias } = weights.head!;
  const logits = ws.logits!;
  if (ws.finals) {
    const { own } = ws.finals;
    rmsNorm(rec, { x: hidden, weight: norm, out: own, eps, rows: input.rows });
    if (input.logitIndices && rows > 0) gatherRows(rec, { x: own, indices: input.logitIndices, out: ws.last, rows });
    linear(rec, { x: input.logitIndices ? ws.last : own, weight, bias, out: logits, rows });
  } else
    normedLinear(rec, { input: behindNorm(rec, { x: hidden, norm, eps, normed: ws.last }, shift, rows), weight, bias, out: logits, rows });
  if (cap !== undefined) softCap(rec, { x: logits, cap, count: rows * logits.shape[1]! });
  trace?.('logits', logits);
}
