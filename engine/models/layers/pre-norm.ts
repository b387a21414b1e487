/**
 * The decoder of most families: embedding, layers of norm, attention, norm and MLP, each half added to the residual stream, a last norm and the
 * head. Split over ranks by heads and columns, its stages are cut where their parts are added.
 */
import { EngineError } from '../../errors.ts';
import type { Device } from '../../gpu/device.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { embedding } from '../../ops/embedding.ts';
import type { KVCache } from '../../ops/kv.ts';
import { linear } from '../../ops/linear.ts';
import { rmsNorm } from '../../ops/norm.ts';
import { ropeTable } from '../../ops/rope.ts';
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
import { MLP_UNIT } from './mlp.ts';
import type { MlpConfig, MlpKind } from './mlp.ts';
import { loadVocabulary, tokenShare } from './vocabulary.ts';
import type { Vocabulary, VocabularyConfig } from './vocabulary.ts';

export interface PreNormConfig extends Omit<DecoderShape, 'widestRow'>, AttentionConfig, MlpConfig, VocabularyConfig {
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly vocabulary: number;
  readonly rope: RopeConfig;
}

/** What a family is: how its config.json reads, and its MLP. */
export interface PreNormFamily<MlpWeights, MlpWorkspace> {
  /** Throws EngineError('invalid_model' | 'unsupported') naming the field. */
  parseConfig(json: Readonly<Record<string, unknown>>): PreNormConfig;
  readonly mlp: MlpKind<MlpWeights, MlpWorkspace>;
}

/** What a shard holds of the model. */
interface Part {
  readonly shard: Shard;
  /** The model's own sizes. */
  readonly config: PreNormConfig;
  readonly attention: AttentionShare;
  readonly columns: Range;
  readonly tokens: Range;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

interface Layer<MlpWeights> {
  readonly inputNorm: Tensor;
  readonly attention: Attention;
  readonly postNorm: Tensor;
  readonly mlp: MlpWeights;
}

interface Weights<MlpWeights> extends Vocabulary {
  readonly layers: readonly Layer<MlpWeights>[];
  readonly cosSin: Tensor;
}

/** Activations, made once for the largest batch. The residual stream alternates between two tensors: no dispatch reads what it writes. */
interface Workspace<MlpWorkspace> {
  readonly hidden: Tensor; // [T, C]
  readonly middle: Tensor; // [T, C] after attention
  readonly normed: Tensor; // [T, C]
  readonly attention: AttentionWorkspace;
  readonly mlp: MlpWorkspace;
  readonly gathered: Tensor; // [B, C]
  readonly last: Tensor; // [B, C] normed
  readonly logits: Tensor | undefined; // [B, V]
}

/** The definition of a family. */
export function preNormDecoder<MlpWeights, MlpWorkspace>(family: PreNormFamily<MlpWeights, MlpWorkspace>): DecoderDefinition {
  return {
    parseConfig(json) {
      const config = configOf(family, json);
      return { ...config, widestRow: widestRow(family, partOf(config, wholeShard(config.layers))) };
    },
    async load(loader, json, context, shard) {
      const config = configOf(family, json);
      const part = partOf(config, shard ?? wholeShard(config.layers));
      const weights = await loadWeights(family, loader, part, context);
      return decoderOf(family, part, weights, loader.parameters - weights.repeated);
    },
  };
}

function configOf<W, S>({ parseConfig, mlp }: PreNormFamily<W, S>, json: Readonly<Record<string, unknown>>): PreNormConfig {
  const activation = json['hidden_act'] ?? mlp.hiddenAct;
  if (activation === mlp.hiddenAct) return parseConfig(json);
  throw new EngineError('unsupported', `config.json: hidden_act is ${describe(activation)}, expected "${mlp.hiddenAct}"`);
}

function decoderOf<W, S>(family: PreNormFamily<W, S>, part: Part, weights: Weights<W>, parameters: number): Decoder {
  const { config, attention, shard } = part;
  const { heads, kvHeads } = attention;
  return {
    shape: { ...config, layers: sizeOf(shard.layers), heads, kvHeads, widestRow: widestRow(family, part) },
    tokens: part.isLast ? part.tokens : { from: 0, to: 0 },
    parameters,
    async prepareKV(device, kv) {
      if (kv.dtype === 'int8') await planLayerKeys(device, weights.layers, config, attention, kv.layers);
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
function widestRow<W, S>({ mlp }: PreNormFamily<W, S>, { columns, attention }: Part): number {
  return Math.max(mlp.widest(sizeOf(columns)), attention.widest);
}

function partOf(config: PreNormConfig, shard: Shard): Part {
  return {
    shard,
    config,
    attention: attentionShare(config, shard),
    columns: shareOf('MLP columns', config.intermediate, MLP_UNIT, shard),
    tokens: tokenShare(config.vocabulary, shard),
    isFirst: shard.layers.from === 0,
    isLast: shard.layers.to === config.layers,
  };
}

async function loadWeights<W, S>(family: PreNormFamily<W, S>, loader: WeightLoader, part: Part, context: number): Promise<Weights<W>> {
  const { shard, config, tokens, attention, columns } = part;
  const vocabulary = await loadVocabulary(loader, config, tokens, part);
  const layers: Layer<W>[] = [];
  for (let i = 0; i < config.layers; i++) {
    const at = `model.layers.${i}`;
    if (i < shard.layers.from || i >= shard.layers.to) loader.skipAll(`${at}.`);
    else {
      layers.push({
        inputNorm: await loader.tensor(`${at}.input_layernorm.weight`, [config.hidden]),
        attention: await loadAttention(loader, `${at}.self_attn`, config, attention, shard),
        postNorm: await loader.tensor(`${at}.post_attention_layernorm.weight`, [config.hidden]),
        mlp: await family.mlp.load(loader, `${at}.mlp`, config, columns),
      });
    }
  }
  loader.finish();
  return { ...vocabulary, layers, cosSin: ropeTable(loader.device, config.rope, context) };
}

function createWorkspace<W, S>(family: PreNormFamily<W, S>, device: Device, part: Part, rows: number, logitRows: number): Workspace<S> {
  const { config, attention, columns, tokens, isLast } = part;
  const make = (name: string, width: number, count = rows): Tensor => device.tensor(name, 'f32', [count, width]);
  return {
    hidden: make('hidden', config.hidden),
    middle: make('middle', config.hidden),
    normed: make('normed', config.hidden),
    attention: attentionWorkspace(device, config, attention, rows, logitRows),
    mlp: family.mlp.workspace(device, sizeOf(columns), rows),
    gathered: make('gathered hidden', config.hidden, logitRows),
    last: make('last', config.hidden, logitRows),
    logits: isLast ? make('logits', sizeOf(tokens), logitRows) : undefined,
  };
}

/** The residual is added by the first rank, so that the sum of all parts is the new hidden state. */
function stages<W, S>(
  { mlp }: PreNormFamily<W, S>,
  { shard, tokens, config, attention, isFirst, isLast }: Part,
  weights: Weights<W>,
  ws: Workspace<S>,
  input: ForwardInput,
  kv: KVCache,
): readonly Stage[] {
  const { eps } = config;
  const { rows, trace } = input;
  const { cosSin } = weights;
  const residual = (x: Tensor): Tensor | undefined => (shard.rank === 0 ? x : undefined);
  const firstId = shard.ranks > 1 ? { firstId: tokens.from } : {};
  const list: Stage[] = [];
  const add = (tensor: Tensor, summed: number, record: (rec: Recorder) => void): void =>
    void list.push({ record, partial: { tensor, rows: summed } });
  if (isFirst) {
    add(ws.hidden, rows, (rec) => {
      embedding(rec, { ids: input.tokens, table: weights.embedding!, out: ws.hidden, rows, ...firstId });
      trace?.('embedding', ws.hidden);
    });
  }
  weights.layers.forEach((weight, layer) => {
    // Of the last layer's rows, those that give no logits leave nothing but their keys and values.
    const indices = isLast && layer === weights.layers.length - 1 ? input.logitIndices : undefined;
    const kept = indices ? input.logitRows : rows;
    add(ws.middle, kept, (rec) => {
      rmsNorm(rec, { x: ws.hidden, weight: weight.inputNorm, out: ws.normed, eps, rows });
      if (indices) gatherRows(rec, { x: ws.hidden, indices, out: ws.gathered, rows: kept });
      const before = residual(indices ? ws.gathered : ws.hidden);
      const step = { x: ws.normed, layer, cosSin, eps, indices, kept, residual: before, out: ws.middle };
      attend(rec, weight.attention, ws.attention, attention, step, input, kv);
    });
    add(ws.hidden, kept, (rec) => {
      rmsNorm(rec, { x: ws.middle, weight: weight.postNorm, out: ws.normed, eps, rows: kept });
      mlp.record(rec, weight.mlp, ws.mlp, { x: ws.normed, residual: residual(ws.middle), out: ws.hidden, rows: kept });
      trace?.(`layer ${layer}`, ws.hidden);
    });
  });
  if (isLast) list.push({ record: (rec) => head(rec, weights, ws, eps, input) });
  return list;
}

/** ws.logits of the first `logitRows` rows, which the last layer leaves. */
function head<S>(rec: Recorder, weights: Vocabulary, ws: Workspace<S>, eps: number, { logitRows: rows, trace }: ForwardInput): void {
  const { norm, weight } = weights.head!;
  rmsNorm(rec, { x: ws.hidden, weight: norm, out: ws.last, eps, rows });
  linear(rec, { x: ws.last, weight, out: ws.logits!, rows });
  trace?.('logits', ws.logits!);
}
