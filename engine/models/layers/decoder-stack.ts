/**
 * The decoder of most families: token embedding, layers of attention and MLP, a final norm and the vocabulary head. By default each half of
 * a layer reads the residual stream through a norm and is added to it. Families may place norms elsewhere, choose another MLP, and have
 * layers that differ: in their sizes, with a sliding window, reading another layer's KV pages, recurrent instead of attention or beside it, or of one half. Split
 * over tensor-parallel ranks by heads and columns, the forward pass is cut into stages where partial sums are added.
 */
import { EngineError } from '../../errors.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import type { KVCache, KVHeads } from '../../ops/kv.ts';
import { ropeAt, ropeTable } from '../../ops/rope.ts';
import { describe } from '../../util/json.ts';
import { sizeOf } from '../../util/math.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { Decoder, DecoderShape, StackDefinition, Stage } from '../decoder.ts';
import type { ForwardInput } from '../forward-input.ts';
import { pairedCheckpoint } from '../paired-checkpoint.ts';
import { expectUsual } from '../config-fields.ts';
import { wholeShard } from '../shard.ts';
import { loadAttention } from './attention.ts';
import type { AttentionShare } from './attention.ts';
import { loadDraftHead, recordFollow, recordDraft } from './draft-head.ts';
import { planLayerKeys } from './key-plan.ts';
import { loadLatent, pairedLatents } from './latent-attention.ts';
import { layerInputsStorage, loadLayerInput, loadLayerInputs } from './layer-inputs.ts';
import { PRE_NORMS, hasPages, hasState, kindOf, layerConfig, layerInputsConfig, likeDraftHead, partOf } from './stack-config.ts';
import type { DecoderFamily, DecoderStackConfig, LayerKind, Part } from './stack-config.ts';
import type { Layer, Weights } from './stack-parts.ts';
import { createWorkspace, stages } from './stack-stages.ts';
import { loadVocabulary, normShift } from './vocabulary.ts';

/** The decoder definition of a family. */
export function decoderStack<W, S>(family: DecoderFamily<W, S>): StackDefinition {
  return {
    storage: layerInputsStorage,
    parseConfig(json) {
      const config = configOf(family, json);
      return { ...config, ...derivedOf(family, partOf(config, wholeShard(config.layers))) };
    },
    expectShard: (json, shard) => void partOf(configOf(family, json), shard),
    workspace(device, json, rows, logitRows, kept) {
      const config = configOf(family, json);
      createWorkspace(family, device, partOf(config, wholeShard(config.layers)), rows, logitRows, kept);
    },
    async load(loader, json, context, shard) {
      const config = atContext(configOf(family, json), context);
      const part = partOf(config, shard ?? wholeShard(config.layers));
      const paired = pairedLoader(loader, config);
      const weights = await loadWeights(family, paired, part, context);
      return decoderOf(family, part, weights, paired.parameters - weights.repeated);
    },
  };
}

/** A loader of the checkpoint with the channels of rotary pairs where kernels have them. */
function pairedLoader(loader: WeightLoader, config: DecoderStackConfig): WeightLoader {
  const { isInterleaved = false, latent, heads } = config;
  if (latent?.isInterleaved) return loader.over(pairedLatents(loader.checkpoint, heads, latent));
  return isInterleaved ? loader.over(pairedCheckpoint(loader.checkpoint, config)) : loader;
}

function configOf<W, S>(
  { parseConfig, mlp, readsLayers = false, activationNames = [], activationField }: DecoderFamily<W, S>,
  json: Readonly<Record<string, unknown>>,
): DecoderStackConfig {
  expectUsual(json, { readsLayers });
  const field = activationField ?? (json['hidden_activation'] === undefined ? 'hidden_act' : 'hidden_activation');
  const activation = json[field] ?? mlp.hiddenAct;
  if ([mlp.hiddenAct, ...activationNames].some((name) => name === activation)) return parseConfig(json);
  throw new EngineError('unsupported', `config.json: ${field} is ${describe(activation)}, expected "${mlp.hiddenAct}"`);
}

/** The same config, with rotary embeddings resolved for sequences of at most `context` positions. */
export function atContext<Config extends DecoderStackConfig>(config: Config, context: number): Config {
  const { rope, kinds } = config;
  const ropes = new Map([rope, ...(kinds ?? []).map((kind) => kind.rope)].map((one) => [one, ropeAt(one, context)]));
  return { ...config, rope: ropes.get(rope)!, kinds: kinds?.map((kind) => ({ ...kind, rope: ropes.get(kind.rope)! })) };
}

/** The parts of a DecoderShape that follow from a shard's layers. */
function derivedOf<W, S>(
  { mlp }: DecoderFamily<W, S>,
  { config, shard, layers }: Part,
): Pick<DecoderShape, 'pages' | 'state' | 'rotaryChannels' | 'widestRow'> {
  const { recurrent } = config;
  const numbers = Array.from({ length: sizeOf(shard.layers) }, (_, i) => shard.layers.from + i);
  const kinds = numbers.map((layer) => kindOf(config, layer));
  const paged = [...numbers.filter((_, i) => hasPages(kinds[i]!)), ...(config.hasDraftHead ? [likeDraftHead(config)] : [])];
  const widths = numbers.flatMap((layer) => [mlp.widest(config, layers[layer]!.mlp), layers[layer]!.attention.widest]);
  return {
    pages: paged.map((layer) => pageHeads(layers[layer]!.attention, kindOf(config, layer), config)),
    state: recurrent && { ...recurrent.state, layers: kinds.filter(hasState).length },
    rotaryChannels: [...new Set(kinds.map(({ rope }) => rope))].reduce((sum, { headDim }) => sum + headDim, 0),
    widestRow: Math.max(...widths, recurrent?.widest ?? 0),
  };
}

function pageHeads({ kvHeads, headDim }: AttentionShare, { window }: LayerKind, { latent }: DecoderStackConfig): KVHeads {
  return { kvHeads, headDim, ...(window !== undefined && { window }), ...(latent && { valuesInKeys: latent.rank }) };
}

function decoderOf<W, S>(family: DecoderFamily<W, S>, part: Part, weights: Weights<W>, parameters: number): Decoder {
  const { config, shard } = part;
  const attentions = weights.layers.map(({ share }) => share.attention);
  return {
    shape: {
      ...config,
      ...derivedOf(family, part),
      layers: sizeOf(shard.layers),
      heads: Math.max(...attentions.map(({ heads }) => heads)),
      kvHeads: attentions[0]!.kvHeads,
    },
    tokens: part.isLast ? part.tokens : { from: 0, to: 0 },
    parameters,
    async prepareKV(device, kv) {
      const paged = [...weights.layers.filter(hasPages), ...(weights.draftHead ? [weights.draftHead.layer] : [])];
      if (kv.dtype === 'int8') await planLayerKeys(device, paged, config, kv.layers);
    },
    createWorkspace(device, rows, logitRows, kept) {
      const ws = createWorkspace(family, device, part, rows, logitRows, kept);
      const stack = { family, config, weights, ws };
      const cut = (input: ForwardInput, kv: KVCache): readonly Stage[] => stages(family, part, weights, ws, input, kv);
      return {
        hidden: ws.hidden,
        logits: ws.logits,
        stages: cut,
        forward(rec, input, kv) {
          for (const stage of cut(input, kv)) stage.record(rec);
          if (input.follow) recordFollow(rec, stack, input, input.follow, kv);
          return ws.logits!;
        },
        ...(weights.draftHead && { draft: (rec, input, kv) => recordDraft(rec, stack, input, kv) }),
      };
    },
  };
}

async function loadWeights<W, S>(family: DecoderFamily<W, S>, loader: WeightLoader, part: Part, context: number): Promise<Weights<W>> {
  const { shard, config, tokens } = part;
  const vocabulary = await loadVocabulary(loader, config, tokens, part);
  const inputs = layerInputsConfig(config);
  const layerInputs = inputs && (await loadLayerInputs(loader, inputs));
  const layers: Layer<W>[] = [];
  for (let i = 0; i < config.layers; i++) {
    if (i < shard.layers.from || i >= shard.layers.to) loader.skipAll(`model.layers.${i}.`);
    else layers.push(await loadLayer(family, loader, part, i, layers));
  }
  const like = (at: string): Promise<Layer<W>> => loadLayer(family, loader, part, likeDraftHead(config), layers, at);
  const draftHead = config.hasDraftHead ? await loadDraftHead(loader, config, like) : undefined;
  await loader.finish();
  const cosSin = new Map([...new Set(layers.map(({ rope }) => rope))].map((rope) => [rope, ropeTable(loader.device, rope, context)]));
  return { ...vocabulary, layers, layerInputs, cosSin, draftHead };
}

async function loadLayer<W, S>(
  { mlp, norms = PRE_NORMS }: DecoderFamily<W, S>,
  loader: WeightLoader,
  { shard, config, layers }: Part,
  layer: number,
  before: readonly Layer<W>[],
  at = `model.layers.${layer}`,
): Promise<Layer<W>> {
  const { hidden, normOffset, hasLayerScalars } = config;
  const kind = kindOf(config, layer);
  const own = layerConfig(config, layer);
  const share = layers[layer]!;
  const { isRecurrent = false, only } = kind;
  const hasAttention = !isRecurrent && only !== 'mlp';
  const { beforeAttention, afterAttention } = only === 'mlp' ? {} : norms;
  // Halves in parallel share the norm before attention, unless each has its own.
  const { beforeMlp, afterMlp } = only === 'attention' ? {} : { ...norms, ...(config.isParallel === true && { beforeMlp: undefined }) };
  const inputs = layerInputsConfig(config);
  const norm = async (name: string | undefined): Promise<Tensor | undefined> =>
    name === undefined ? undefined : loader.tensor(`${at}.${name}.weight`, [hidden], normOffset);
  const shift = async (name: string | undefined): Promise<Tensor | undefined> =>
    name === undefined ? undefined : normShift(loader, `${at}.${name}`, { hidden, layerNorm: config.layerNorm });
  return {
    share,
    inputNorm: await norm(beforeAttention),
    inputShift: await shift(beforeAttention),
    attention: hasAttention && !config.latent ? await loadAttention(loader, `${at}.self_attn`, own, share.attention, shard) : undefined,
    latent:
      hasAttention && config.latent
        ? await loadLatent(loader, `${at}.self_attn`, { ...own, latent: config.latent }, share.attention, shard)
        : undefined,
    recurrent: hasState(kind) ? await config.recurrent!.load(loader, at) : undefined,
    place: kind.keysOf === undefined ? before.filter(hasPages).length : before[kind.keysOf]!.place,
    statePlace: before.filter(hasState).length,
    attentionNorm: await norm(afterAttention),
    mlpNorm: await norm(beforeMlp),
    mlpShift: await shift(beforeMlp),
    // Adapters go with MLPs of their own, not with those among experts.
    mlp:
      only === 'attention'
        ? undefined
        : await mlp.load(config.experts ? loader.withoutLoras() : loader, `${at}.mlp`, own, share.mlp, layer),
    outputNorm: await norm(afterMlp),
    input: inputs && (await loadLayerInput(loader, at, inputs)),
    scale: hasLayerScalars ? (await loader.data(`${at}.layer_scalar`, [1]))[0]! : 1,
    ...kind,
  };
}
