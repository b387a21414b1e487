/**
 * A decoder of several residual streams (altup.ts; Gemma 3n). A layer processes the first: attention with a low-rank branch beside it
 * (laurel.ts), then an MLP that may sparsify its gates, each between two norms. A per-layer embedding (layer-inputs.ts) is added to the
 * other streams. The model cannot be split.
 */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { gateMul, gateSlice, gateSparse, softCap } from '../../ops/activation.ts';
import { embedding } from '../../ops/embedding.ts';
import type { KVCache } from '../../ops/kv.ts';
import { linear } from '../../ops/linear.ts';
import type { PromptRows } from '../../ops/linear-matrix.ts';
import { rmsNorm } from '../../ops/norm.ts';
import { ropeTable } from '../../ops/rope.ts';
import type { RopeConfig } from '../../ops/rope.ts';
import { gatherRows } from '../../ops/sample.ts';
import type { Decoder, StackDefinition, DecoderShape } from '../decoder.ts';
import type { ForwardInput } from '../forward-input.ts';
import { altUpWorkspace, expandStreams, loadAltUp, loadAltUpEnds, mergeStreams, recordCorrected, recordCorrection, recordPrediction, streamOf } from './altup.ts'; // prettier-ignore
import type { AltUpConfig, AltUpEnds } from './altup.ts';
import { attend, attentionWorkspace, loadAttention } from './attention.ts';
import { byTurns } from './by-turns.ts';
import { planLayerKeys } from './key-plan.ts';
import { laurelWorkspace, loadLaurel, recordLaurel } from './laurel.ts';
import { layerInputsStorage, layerInputsWorkspace, loadLayerInput, loadLayerInputs, recordLayerInputs } from './layer-inputs.ts';
import type { LayerInputs, LayerInputsConfig } from './layer-inputs.ts';
import { gatedMlp } from './mlp.ts';
import { hasPages, layerConfig, partOf } from './stack-config.ts';
import type { DecoderStackConfig, LayerKind, LayerShare, Part } from './stack-config.ts';
import { atContext } from './decoder-stack.ts';
import { loadVocabulary } from './vocabulary.ts';
import type { Vocabulary } from './vocabulary.ts';
import type { Json } from '../../util/json.ts';
import { wholeShard } from '../shard.ts';
import type { WeightLoader } from '../weight-loader.ts';

const MLP = gatedMlp('gelu_pytorch_tanh');

export interface StreamsConfig extends DecoderStackConfig, AltUpConfig {
  readonly laurelRank: number;
  /** Rows of the per-layer embedding table. */
  readonly inputVocabulary: number;
  /** By layer: gates below their mean plus this many standard deviations become 0; undefined = all are kept. */
  readonly cuts: readonly (number | undefined)[];
}

/** The decoder definition of a family. */
export function streamsStack(parseConfig: (json: Json) => StreamsConfig): StackDefinition {
  return {
    storage: layerInputsStorage,
    parseConfig: (json) => shapeOf(parseConfig(json)),
    expectShard: (json, shard) => void partOf(parseConfig(json), shard),
    workspace: (device, json, rows, logitRows) => void workspaceOf(device, parseConfig(json), rows, logitRows),
    async load(loader, json, context, shard): Promise<Decoder> {
      const config = atContext(parseConfig(json), context);
      const part = partOf(config, shard ?? wholeShard(config.layers));
      const weights = await loadWeights(loader.withoutLoras(), config, part, context);
      return {
        shape: shapeOf(config),
        tokens: part.tokens,
        parameters: loader.parameters,
        async prepareKV(device, kv) {
          if (kv.dtype === 'int8') await planLayerKeys(device, weights.layers.filter(hasPages), config, kv.layers);
        },
        createWorkspace(device, rows, logitRows) {
          const ws = workspaceOf(device, config, rows, logitRows);
          const run = (rec: Recorder, input: ForwardInput, kv: KVCache): Tensor => forward(rec, config, weights, ws, input, kv);
          return {
            hidden: ws.hidden,
            logits: ws.logits,
            stages: (input, kv) => [{ record: (rec) => void run(rec, input, kv) }],
            forward: run,
          };
        },
      };
    },
  };
}

type Layer = Awaited<ReturnType<typeof loadLayer>>;
type Workspace = ReturnType<typeof workspaceOf>;

interface Weights extends Vocabulary {
  readonly ends: AltUpEnds;
  readonly layerInputs: LayerInputs;
  readonly layers: readonly Layer[];
  readonly cosSin: ReadonlyMap<RopeConfig, Tensor>;
}

function inputsOf(config: StreamsConfig): LayerInputsConfig {
  return { ...config, ...config.layerInputs!, vocabulary: config.inputVocabulary };
}

function shapeOf(config: StreamsConfig): DecoderShape {
  const kinds = config.kinds!.filter(hasPages);
  const widest = Math.max(
    (config.heads + 2 * config.kvHeads) * config.headDim,
    2 * config.intermediate,
    config.layers * config.layerInputs!.columns,
  );
  return {
    ...config,
    pages: kinds.map(({ window }) => ({ kvHeads: config.kvHeads, headDim: config.headDim, ...(window !== undefined && { window }) })),
    rotaryChannels: new Set(config.kinds!.map(({ rope }) => rope)).size * config.headDim,
    widestRow: widest,
  };
}

function workspaceOf(device: Device, config: StreamsConfig, rows: number, logitRows: number) {
  const { hidden, layers, streams } = config;
  const shares = partOf(config, wholeShard(layers)).layers;
  const make = (name: string, count = rows, columns = hidden): Tensor => device.tensor(name, 'f32', [count, columns]);
  const maker = byTurns(device);
  return {
    hidden: make('hidden'), normed: make('normed'), branch: make('branch'), middle: make('middle'), attended: make('behind attention'),
    // The larger first (see byTurns): layers that compute keys, then layers that read another layer's.
    attention: attentionWorkspace(maker, config, shares[0]!.attention, rows, logitRows),
    queries: attentionWorkspace(maker, config, shares.at(-1)!.attention, rows, logitRows),
    mlp: MLP.workspace(maker, config, shares[0]!.mlp, rows),
    laurel: laurelWorkspace(device, hidden, config.laurelRank, rows),
    altUp: altUpWorkspace(device, config, rows),
    inputs: layerInputsWorkspace(device, inputsOf(config), rows, logitRows),
    gathered: Array.from({ length: streams }, (_, i) => make(`gathered stream ${i}`, logitRows)),
    sums: [make('sum of streams', logitRows), make('other sum of streams', logitRows)] as const,
    last: make('last', logitRows),
    logits: make('logits', logitRows, config.vocabulary),
  }; // prettier-ignore
}

async function loadLayer(
  loader: WeightLoader,
  config: StreamsConfig,
  share: LayerShare,
  layer: number,
  before: readonly (LayerKind & { readonly place: number })[],
) {
  const at = `model.layers.${layer}`;
  const kind = config.kinds![layer]!;
  const own = layerConfig(config, layer);
  const norm = (name: string): Promise<Tensor> => loader.tensor(`${at}.${name}_layernorm.weight`, [config.hidden]);
  return {
    ...kind,
    share,
    cut: config.cuts[layer],
    place: kind.keysOf === undefined ? before.filter(hasPages).length : before[kind.keysOf]!.place,
    inputNorm: await norm('input'),
    attentionNorm: await norm('post_attention'),
    mlpNorm: await norm('pre_feedforward'),
    outputNorm: await norm('post_feedforward'),
    attention: await loadAttention(loader, `${at}.self_attn`, own, share.attention, wholeShard(config.layers)),
    mlp: await MLP.load(loader, `${at}.mlp`, own, share.mlp, layer),
    laurel: await loadLaurel(loader, `${at}.laurel`, config.hidden, config.laurelRank),
    altUp: await loadAltUp(loader, `${at}.altup`, config),
    input: await loadLayerInput(loader, at, inputsOf(config)),
  };
}

async function loadWeights(loader: WeightLoader, config: StreamsConfig, part: Part, context: number): Promise<Weights> {
  const vocabulary = await loadVocabulary(loader, config, part.tokens, part);
  const layerInputs = await loadLayerInputs(loader, inputsOf(config));
  const ends = await loadAltUpEnds(loader, config);
  const layers: Layer[] = [];
  for (const [i, share] of part.layers.entries()) layers.push(await loadLayer(loader, config, share, i, layers));
  await loader.finish();
  const ropes = new Set(layers.map(({ rope }) => rope));
  return {
    ...vocabulary,
    layerInputs,
    ends,
    layers,
    cosSin: new Map([...ropes].map((rope) => [rope, ropeTable(loader.device, rope, context)])),
  };
}

function forward(rec: Recorder, config: StreamsConfig, weights: Weights, ws: Workspace, input: ForwardInput, kv: KVCache): Tensor {
  const { rows, logitRows, logitIndices: indices, trace, tokens: ids } = input;
  const { eps, embeddingScale: scale, logitSoftCap: cap, vocabulary } = config;
  const { streams } = ws.altUp;
  for (const out of [ws.hidden, streamOf(streams, 0)]) embedding(rec, { ids, table: weights.embedding!, out, rows, scale });
  trace?.('embedding', ws.hidden);
  recordLayerInputs(rec, weights.layerInputs, ws.inputs, inputsOf(config), ws.hidden, input);
  expandStreams(rec, weights.ends, ws.altUp, ws.hidden, ws.branch, rows);
  weights.layers.forEach((layer, i) => {
    recordLayer(rec, config, layer, i, weights.cosSin.get(layer.rope)!, ws, input, kv);
    trace?.(`layer ${i}`, streamOf(streams, 0));
  });
  if (indices) ws.gathered.forEach((out, i) => gatherRows(rec, { x: streamOf(streams, i), indices, out, rows: logitRows }));
  const last = ws.gathered.map((gathered, i) => (indices ? gathered : streamOf(streams, i)));
  const sum = mergeStreams(rec, weights.ends, last, ws.sums, ws.branch, logitRows);
  // RMS norm of the streams' mean: equal to that of their sum, but for eps, which is scaled.
  rmsNorm(rec, { x: sum, weight: weights.head!.norm, out: ws.last, eps: eps * config.streams ** 2, rows: logitRows });
  linear(rec, { x: ws.last, weight: weights.head!.weight, out: ws.logits, rows: logitRows });
  if (cap !== undefined) softCap(rec, { x: ws.logits, cap, count: logitRows * vocabulary });
  trace?.('logits', ws.logits);
  return ws.logits;
}

function recordLayer(
  rec: Recorder,
  { eps, scores, layerInputs }: StreamsConfig,
  layer: Layer,
  index: number,
  cosSin: Tensor,
  ws: Workspace,
  input: ForwardInput,
  kv: KVCache,
): void {
  const { rows, promptFrom } = input;
  const { altUp, share, window } = layer;
  const { normed, branch, middle, attended, inputs } = ws;
  recordPrediction(rec, altUp, ws.altUp, eps, rows);
  const active = streamOf(ws.altUp.predicted, 0);
  rmsNorm(rec, { x: active, weight: layer.inputNorm, out: normed, eps, rows });
  const step = {
    // The normed rows are kept because LAuReL reads them too.
    input: { x: normed, norm: undefined, eps, normed },
    layer: layer.place,
    cosSin,
    scores: { ...scores, window },
    indices: undefined,
    kept: rows,
    promptFrom,
    residual: undefined,
    out: branch,
  };
  attend(rec, layer.attention, layer.keysOf === undefined ? ws.attention : ws.queries, share.attention, step, input, kv);
  rmsNorm(rec, { x: branch, weight: layer.attentionNorm, residual: active, out: attended, eps, rows });
  recordLaurel(rec, layer.laurel, ws.laurel, { x: normed, attended, out: middle, eps, rows });
  rmsNorm(rec, { x: middle, weight: layer.mlpNorm, out: normed, eps, rows });
  recordMlp(rec, layer, ws, { rows, promptFrom });
  rmsNorm(rec, { x: branch, weight: layer.outputNorm, residual: middle, out: attended, eps, rows });
  recordCorrection(rec, altUp, ws.altUp, attended, inputs.before, eps, rows);
  linear(rec, { x: inputs.before, weight: layer.input.gate, out: inputs.gate, rows });
  gateSlice(rec, {
    gate: inputs.gate,
    x: inputs.inputs,
    first: index * layerInputs!.columns,
    out: inputs.gated,
    activation: 'gelu_tanh',
    rows,
  });
  linear(rec, { x: inputs.gated, weight: layer.input.projection, out: branch, rows });
  rmsNorm(rec, { x: branch, weight: layer.input.norm, out: normed, eps, rows });
  recordCorrected(rec, ws.altUp, attended, normed, rows);
}

/** ws.branch = mlp(ws.normed), with sparse gates in some layers. */
function recordMlp(rec: Recorder, { mlp: { gateUp, down }, cut }: Layer, { normed, branch, mlp: ws }: Workspace, rows: PromptRows): void {
  linear(rec, { x: normed, weight: gateUp, out: ws.gateUp, ...rows });
  const gate = { gateUp: ws.gateUp, out: ws.activated, activation: 'gelu_tanh', rows: rows.rows } as const;
  if (cut === undefined) gateMul(rec, gate);
  else gateSparse(rec, { ...gate, deviations: cut });
  linear(rec, { x: ws.activated, weight: down, out: branch, ...rows });
}
