/**
 * The decoder of most families: embedding, layers of attention and MLP, each behind a norm and added to the residual stream, a last norm and the
 * head. Families differ in the MLP, in norms behind the halves too or only there, in layers that see a window only, in layers that have something recurrent in the place of attention. Split over ranks by heads and columns, its stages
 * are cut where their parts are added.
 */
import { EngineError } from '../../errors.ts';
import type { Device } from '../../gpu/device.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { softCap } from '../../ops/activation.ts';
import { embedding } from '../../ops/embedding.ts';
import type { KVCache } from '../../ops/kv.ts';
import { linear } from '../../ops/linear.ts';
import { rmsNorm } from '../../ops/norm.ts';
import { ropeAt, ropeTable } from '../../ops/rope.ts';
import type { RopeConfig } from '../../ops/rope.ts';
import { gatherRows } from '../../ops/sample.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import { describe } from '../../util/json.ts';
import { sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { Decoder, DecoderDefinition, DecoderShape, Stage } from '../decoder.ts';
import type { ForwardInput } from '../forward-input.ts';
import { shareOf, wholeShard } from '../shard.ts';
import type { Shard } from '../shard.ts';
import { attend, attentionShare, attentionWorkspace, loadAttention } from './attention.ts';
import type { Attention, AttentionConfig, AttentionShare, AttentionWorkspace } from './attention.ts';
import { planLayerKeys } from './key-plan.ts';
import type { Recurrent } from './recurrent.ts';
import { mlpUnit } from './mlp.ts';
import type { MlpConfig, MlpKind, MlpShare } from './mlp.ts';
import { loadVocabulary, tokenShare } from './vocabulary.ts';
import type { Vocabulary, VocabularyConfig } from './vocabulary.ts';

export interface DecoderStackConfig
  extends Omit<DecoderShape, 'widestRow' | 'pagedLayers' | 'state'>, AttentionConfig, MlpConfig, VocabularyConfig {
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly vocabulary: number;
  readonly rope: RopeConfig;
  /** Of every layer, where they are not all alike. */
  readonly kinds?: readonly LayerKind[] | undefined;
  /** What recurrent layers have in the place of attention. */
  readonly recurrent?: Recurrent | undefined;
  /** What embeddings are multiplied with; default 1. */
  readonly embeddingScale?: number | undefined;
  /** What logits are multiplied with; default 1. */
  readonly logitScale?: number | undefined;
  /** Logits are cap * tanh(logits / cap); absent = as they are. */
  readonly logitSoftCap?: number | undefined;
}

/** What one layer has of its own. */
export interface LayerKind {
  readonly rope: RopeConfig;
  /** Positions that a row sees, the last of which is its own; absent = all. */
  readonly window?: number | undefined;
  /** It has no attention and no pages, but a state. */
  readonly isRecurrent?: boolean | undefined;
}

/** Where a layer has norms, by the checkpoint's names. What comes out of a half with one behind it is normed before it is added to the residual stream. */
export interface LayerNorms {
  readonly beforeAttention?: string;
  readonly afterAttention?: string;
  readonly beforeMlp?: string;
  readonly afterMlp?: string;
}

const PRE_NORMS: LayerNorms = { beforeAttention: 'input_layernorm', beforeMlp: 'post_attention_layernorm' };

/** What a family is: how its config.json reads, its MLP, and its norms where they are not before the halves only. */
export interface DecoderFamily<MlpWeights, MlpWorkspace> {
  /** Throws EngineError('invalid_model' | 'unsupported') naming the field. */
  parseConfig(json: Readonly<Record<string, unknown>>): DecoderStackConfig;
  readonly mlp: MlpKind<MlpWeights, MlpWorkspace>;
  readonly norms?: LayerNorms;
}

/** What a shard holds of the model. */
interface Part {
  readonly shard: Shard;
  /** The model's own sizes. */
  readonly config: DecoderStackConfig;
  readonly attention: AttentionShare;
  readonly mlp: MlpShare;
  readonly tokens: Range;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

interface Layer<MlpWeights> extends LayerKind {
  readonly inputNorm: Tensor | undefined;
  /** Unless it is recurrent. */
  readonly attention: Attention | undefined;
  /** Weights of a recurrent layer. */
  readonly recurrent: unknown;
  /** Among the layers with pages, or among those with a state. */
  readonly place: number;
  readonly attentionNorm: Tensor | undefined;
  readonly mlpNorm: Tensor | undefined;
  readonly mlp: MlpWeights;
  readonly outputNorm: Tensor | undefined;
}

interface Weights<MlpWeights> extends Vocabulary {
  readonly layers: readonly Layer<MlpWeights>[];
  readonly cosSin: ReadonlyMap<RopeConfig, Tensor>;
}

/** Activations, made once for the largest batch. The residual stream alternates between two tensors: no dispatch reads what it writes. */
interface Workspace<MlpWorkspace> {
  readonly hidden: Tensor; // [T, C]
  readonly middle: Tensor; // [T, C] after attention
  readonly normed: Tensor; // [T, C]
  readonly branch: Tensor | undefined; // [T, C] what comes out of a half that has a norm behind it
  readonly attention: AttentionWorkspace;
  readonly recurrent: unknown;
  readonly mlp: MlpWorkspace;
  readonly gathered: Tensor; // [B, C]
  readonly last: Tensor; // [B, C] normed
  readonly logits: Tensor | undefined; // [B, V]
}

/** The definition of a family. */
export function decoderStack<MlpWeights, MlpWorkspace>(family: DecoderFamily<MlpWeights, MlpWorkspace>): Required<DecoderDefinition> {
  return {
    parseConfig(json) {
      const config = configOf(family, json);
      return { ...config, ...statesOf(config), widestRow: widestRow(family, partOf(config, wholeShard(config.layers))) };
    },
    workspace(device, json, rows, logitRows) {
      const config = configOf(family, json);
      createWorkspace(family, device, partOf(config, wholeShard(config.layers)), rows, logitRows);
    },
    async load(loader, json, context, shard) {
      const config = atContext(configOf(family, json), context);
      const part = partOf(config, shard ?? wholeShard(config.layers));
      const weights = await loadWeights(family, loader, part, context);
      return decoderOf(family, part, weights, loader.parameters - weights.repeated);
    },
  };
}

function configOf<W, S>({ parseConfig, mlp }: DecoderFamily<W, S>, json: Readonly<Record<string, unknown>>): DecoderStackConfig {
  const field = json['hidden_activation'] === undefined ? 'hidden_act' : 'hidden_activation';
  const activation = json[field] ?? mlp.hiddenAct;
  if (activation === mlp.hiddenAct) return parseConfig(json);
  throw new EngineError('unsupported', `config.json: ${field} is ${describe(activation)}, expected "${mlp.hiddenAct}"`);
}

/** With the rotary embeddings of texts of at most `context` positions. */
function atContext(config: DecoderStackConfig, context: number): DecoderStackConfig {
  const { rope, kinds } = config;
  const ropes = new Map([rope, ...(kinds ?? []).map((kind) => kind.rope)].map((one) => [one, ropeAt(one, context)]));
  return { ...config, rope: ropes.get(rope)!, kinds: kinds?.map((kind) => ({ ...kind, rope: ropes.get(kind.rope)! })) };
}

/** The layers that have pages, and what the others keep of a sequence. */
function statesOf({ layers, kinds = [], recurrent }: DecoderStackConfig): Pick<DecoderShape, 'pagedLayers' | 'state'> {
  const count = kinds.filter((kind) => kind.isRecurrent).length;
  return { pagedLayers: layers - count, state: recurrent && { ...recurrent.state, layers: count } };
}

function decoderOf<W, S>(family: DecoderFamily<W, S>, part: Part, weights: Weights<W>, parameters: number): Decoder {
  const { config, attention, shard } = part;
  const { heads, kvHeads } = attention;
  return {
    shape: {
      ...config,
      ...statesOf(config),
      pagedLayers: weights.layers.filter(({ attention }) => attention).length,
      layers: sizeOf(shard.layers),
      heads,
      kvHeads,
      widestRow: widestRow(family, part),
    },
    tokens: part.isLast ? part.tokens : { from: 0, to: 0 },
    parameters,
    async prepareKV(device, kv) {
      if (kv.dtype === 'int8')
        await planLayerKeys(
          device,
          weights.layers.flatMap(({ attention: own, inputNorm, rope }) => (own ? { attention: own, inputNorm, rope } : [])),
          config,
          attention,
          kv.layers,
        );
    },
    createWorkspace(device, rows, logitRows) {
      const ws = createWorkspace(family, device, part, rows, logitRows);
      const cut = (input: ForwardInput, kv: KVCache): readonly Stage[] => stages(family, part, weights, ws, input, kv);
      return {
        hidden: ws.hidden,
        logits: ws.logits,
        stages: cut,
        forward(rec, input, kv) {
          for (const stage of cut(input, kv)) stage.record(rec);
          return ws.logits!;
        },
      };
    },
  };
}

/** Columns of the widest activation. */
function widestRow<W, S>({ mlp }: DecoderFamily<W, S>, { config, mlp: share, attention }: Part): number {
  return Math.max(mlp.widest(config, share), attention.widest, config.recurrent?.widest ?? 0);
}

function partOf(config: DecoderStackConfig, shard: Shard): Part {
  return {
    shard,
    config,
    attention: attentionShare(config, shard),
    mlp: {
      columns: shareOf('MLP columns', config.intermediate, mlpUnit(config.intermediate, shard.ranks), shard),
      experts: config.experts ? shareOf('experts', config.experts.count, 1, shard) : { from: 0, to: 0 },
    },
    tokens: tokenShare(config.vocabulary, shard),
    isFirst: shard.layers.from === 0,
    isLast: shard.layers.to === config.layers,
  };
}

async function loadWeights<W, S>(family: DecoderFamily<W, S>, loader: WeightLoader, part: Part, context: number): Promise<Weights<W>> {
  const { shard, config, tokens } = part;
  const vocabulary = await loadVocabulary(loader, config, tokens, part);
  const layers: Layer<W>[] = [];
  for (let i = 0; i < config.layers; i++) {
    if (i < shard.layers.from || i >= shard.layers.to) loader.skipAll(`model.layers.${i}.`);
    else layers.push(await loadLayer(family, loader, part, i, layers));
  }
  await loader.finish();
  const cosSin = new Map([...new Set(layers.map(({ rope }) => rope))].map((rope) => [rope, ropeTable(loader.device, rope, context)]));
  return { ...vocabulary, layers, cosSin };
}

async function loadLayer<W, S>(
  { mlp, norms = PRE_NORMS }: DecoderFamily<W, S>,
  loader: WeightLoader,
  { shard, config, attention, mlp: share }: Part,
  layer: number,
  before: readonly Layer<W>[],
): Promise<Layer<W>> {
  const { rope, kinds, hidden, normOffset } = config;
  const kind: LayerKind = kinds?.[layer] ?? { rope };
  const isRecurrent = kind.isRecurrent === true;
  const at = `model.layers.${layer}`;
  const norm = async (name: string | undefined): Promise<Tensor | undefined> =>
    name === undefined ? undefined : loader.tensor(`${at}.${name}.weight`, [hidden], normOffset);
  return {
    inputNorm: await norm(norms.beforeAttention),
    attention: isRecurrent ? undefined : await loadAttention(loader, `${at}.self_attn`, { ...config, ...kind }, attention, shard),
    recurrent: isRecurrent ? await config.recurrent!.load(loader, at) : undefined,
    place: before.filter((other) => (other.isRecurrent === true) === isRecurrent).length,
    attentionNorm: await norm(norms.afterAttention),
    mlpNorm: await norm(norms.beforeMlp),
    mlp: await mlp.load(loader, `${at}.mlp`, config, share, layer),
    outputNorm: await norm(norms.afterMlp),
    ...kind,
  };
}

function createWorkspace<W, S>(
  { mlp, norms = PRE_NORMS }: DecoderFamily<W, S>,
  device: Device,
  { config, attention, mlp: share, tokens, isLast }: Part,
  rows: number,
  logitRows: number,
): Workspace<S> {
  const hasBranch = norms.afterAttention !== undefined || norms.afterMlp !== undefined;
  const make = (name: string, width: number, count = rows): Tensor => device.tensor(name, 'f32', [count, width]);
  return {
    hidden: make('hidden', config.hidden),
    middle: make('middle', config.hidden),
    normed: make('normed', config.hidden),
    branch: hasBranch ? make('branch', config.hidden) : undefined,
    attention: attentionWorkspace(device, config, attention, rows, logitRows),
    recurrent: config.recurrent?.workspace(device, rows, logitRows),
    mlp: mlp.workspace(device, config, share, rows),
    gathered: make('gathered hidden', config.hidden, logitRows),
    last: make('last', config.hidden, logitRows),
    logits: isLast ? make('logits', sizeOf(tokens), logitRows) : undefined,
  };
}

/**
 * The residual is added by the first rank, so that the sum of all parts is the new hidden state. A norm behind a half needs that sum first: there the
 * stage leaves the parts of the half alone, and the next begins with norm and residual.
 */
function stages<W, S>(
  { mlp }: DecoderFamily<W, S>,
  { shard, tokens, config, attention, isFirst, isLast }: Part,
  weights: Weights<W>,
  ws: Workspace<S>,
  input: ForwardInput,
  kv: KVCache,
): readonly Stage[] {
  const { eps, embeddingScale: scale } = config;
  const { rows, trace } = input;
  const firstId = shard.ranks > 1 ? { firstId: tokens.from } : {};
  const list: Stage[] = [];
  // What the stage before leaves to be done once its parts are added.
  let settle: ((rec: Recorder) => void) | undefined;
  const add = (partial: Stage['partial'], record: (rec: Recorder) => void): void => {
    const first = settle;
    settle = undefined;
    list.push({ ...(partial && { partial }), record: (rec) => (first?.(rec), record(rec)) });
  };
  /** A stage that ends in out = residual + a half, whose parts `record` leaves in the tensor it is given. */
  const addHalf = (norm: Tensor | undefined, before: Tensor, out: Tensor, kept: number, record: Half): void => {
    const residual = shard.rank === 0 && !norm ? before : undefined;
    const parts = norm ? ws.branch! : out;
    add({ tensor: parts, rows: kept }, (rec) => record(rec, residual, parts));
    if (norm) settle = (rec) => rmsNorm(rec, { x: parts, weight: norm, residual: before, out, eps, rows: kept });
  };
  /** What a half reads: x behind the norm before it, where there is one. */
  const normed = (rec: Recorder, x: Tensor, norm: Tensor | undefined, rows: number): Tensor => {
    if (norm) rmsNorm(rec, { x, weight: norm, out: ws.normed, eps, rows });
    return norm ? ws.normed : x;
  };
  if (isFirst) {
    add({ tensor: ws.hidden, rows }, (rec) => {
      embedding(rec, { ids: input.tokens, table: weights.embedding!, out: ws.hidden, rows, scale, ...firstId });
      trace?.('embedding', ws.hidden);
    });
  }
  weights.layers.forEach((weight, layer) => {
    // Of the last layer's rows, those that give no logits leave nothing but their keys and values.
    const indices = isLast && layer === weights.layers.length - 1 ? input.logitIndices : undefined;
    const kept = indices ? input.logitRows : rows;
    const cosSin = weights.cosSin.get(weight.rope)!;
    const scores = { ...config.scores, window: weight.window };
    addHalf(weight.attentionNorm, indices ? ws.gathered : ws.hidden, ws.middle, kept, (rec, residual, out) => {
      const x = normed(rec, ws.hidden, weight.inputNorm, rows);
      if (indices) gatherRows(rec, { x: ws.hidden, indices, out: ws.gathered, rows: kept });
      const step = { x, eps, indices, kept, residual, out };
      if (weight.attention)
        attend(rec, weight.attention, ws.attention, attention, { ...step, layer: weight.place, cosSin, scores }, input, kv);
      else config.recurrent!.record(rec, weight.recurrent, ws.recurrent, { ...step, state: kv.states!.layers[weight.place]! }, input);
    });
    addHalf(weight.outputNorm, ws.middle, ws.hidden, kept, (rec, residual, out) => {
      const x = normed(rec, ws.middle, weight.mlpNorm, kept);
      mlp.record(rec, weight.mlp, ws.mlp, { x, residual, out, rows: kept });
      if (!weight.outputNorm) trace?.(`layer ${layer}`, ws.hidden);
    });
    const settled = settle;
    if (settled && trace) settle = (rec) => (settled(rec), trace(`layer ${layer}`, ws.hidden));
  });
  if (isLast) add(undefined, (rec) => head(rec, weights, ws, config, input));
  else if (settle) add(undefined, () => {});
  return list;
}

/** Records a half of a layer: parts = residual + f(hidden state). */
type Half = (rec: Recorder, residual: Tensor | undefined, parts: Tensor) => void;

/** ws.logits of the first `logitRows` rows, which the last layer leaves. */
function head<S>(
  rec: Recorder,
  weights: Vocabulary,
  ws: Workspace<S>,
  { eps, logitSoftCap: cap }: DecoderStackConfig,
  input: ForwardInput,
): void {
  const { logitRows: rows, trace } = input;
  const { norm, weight } = weights.head!;
  const logits = ws.logits!;
  rmsNorm(rec, { x: ws.hidden, weight: norm, out: ws.last, eps, rows });
  linear(rec, { x: ws.last, weight, out: logits, rows });
  if (cap !== undefined) softCap(rec, { x: logits, cap, count: rows * logits.shape[1]! });
  trace?.('logits', logits);
}
