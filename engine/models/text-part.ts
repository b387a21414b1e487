/** The text part of a multimodal checkpoint: its configuration is in `text_config`, its weights below a prefix. */
import type { Json } from '../util/json.ts';
import { isObject } from '../util/json.ts';
import type { Checkpoint } from '../weights/checkpoint.ts';
import { layerCount, number } from './config-fields.ts';
import type { DecoderDefinition, StackDefinition } from './decoder.ts';
import type { WeightLoader } from './weight-loader.ts';

/** Name prefixes of the text part in published checkpoints, as transformers 4 and transformers 5 write them. */
const PREFIXES: readonly (readonly [stored: string, name: string])[] = [
  ['language_model.model.', 'model.'],
  ['language_model.lm_head.', 'lm_head.'],
  ['model.language_model.', 'model.'],
];

/** Names of the vision and audio parts. */
const OTHER_PARTS = /^(model\.)?(vision_tower|vision_model|multi_modal_projector|embed_vision|audio_tower|embed_audio|visual)\./;
/** Names of the draft head. */
const DRAFT_HEAD = /^mtp\./;

/** Whether a tensor belongs to the text part; the draft head does only if `hasHead`. */
function isOfText(name: string, hasHead: boolean): boolean {
  return !OTHER_PARTS.test(name) && (hasHead || !DRAFT_HEAD.test(name));
}

/**
 * The text part's configuration; the whole file for a text-only model. End-of-sequence tokens come from the whole model first: the text
 * part often has its class's default (transformers, GenerationConfig.from_model_config).
 */
export function textConfig(json: Json): Json {
  const text = json['text_config'];
  if (!isObject(text)) return json;
  const eos_token_id = json['eos_token_id'] ?? text['eos_token_id'];
  // transformers 4 reads the text part's field, transformers 5 the whole model's; where they differ, the weights decide whether the head is
  // tied.
  const [whole, part] = [json, text].map((config) => config['tie_word_embeddings'] ?? undefined);
  const differ = whole !== undefined && part !== undefined && whole !== part;
  return { ...json, ...text, eos_token_id, ...(differ && { tie_word_embeddings: null }) };
}

/** A loader of the text part's weights, under the names that they have in a text-only model. */
export function textWeights(loader: WeightLoader, hasHead = false): WeightLoader {
  const stored = new Map<string, string>();
  for (const name of loader.checkpoint.names()) {
    if (!isOfText(name, hasHead)) continue;
    const [prefix, own] = PREFIXES.find(([prefix]) => name.startsWith(prefix)) ?? ['', ''];
    stored.set(own + name.slice(prefix.length), name);
  }
  return underNames(loader, stored);
}

/** A loader of a checkpoint under other names; `names` maps each to the checkpoint's own. */
function underNames(loader: WeightLoader, names: ReadonlyMap<string, string>): WeightLoader {
  return loader.over(renamed(loader.checkpoint, names), (name) => names.get(name) ?? name);
}

/** A checkpoint under other names; `names` maps each to its name in `from`. Tensors that it does not list are left out. */
function renamed(from: Checkpoint, names: ReadonlyMap<string, string>): Checkpoint {
  const stored = (name: string): string => names.get(name) ?? name;
  return {
    names: () => [...names.keys()],
    tensor: (name) => (names.has(name) ? from.tensor(stored(name)) : undefined),
    read: (name, elements) => from.read(stored(name), elements),
    ...(from.blocks && { blocks: (name, rows, into) => from.blocks!(stored(name), rows, into) }),
    ...(from.stored && { stored: (name, elements, into) => from.stored!(stored(name), elements, into) }),
    readIds: (name) => from.readIds(stored(name)),
    close: () => from.close(),
  };
}

/** A loader of these tensors only. */
export function withTensors(loader: WeightLoader, names: readonly string[]): WeightLoader {
  return underNames(loader, new Map(names.map((name) => [name, name])));
}

/** A loader under the names that other families use; all replacements are applied, in order, to each of the checkpoint's own names. */
export function withUsualNames(loader: WeightLoader, usual: readonly (readonly [RegExp, string])[]): WeightLoader {
  const { checkpoint } = loader;
  const names = checkpoint
    .names()
    .map((stored) => [usual.reduce((name, [own, other]) => name.replace(own, other), stored), stored] as const);
  return underNames(loader, new Map(names));
}

/**
 * A definition without the layers of the head that guesses, which are numbered on behind the model's, under the names that other families use
 * (withUsualNames). `layers`: the family's number of layers where a file does not say it.
 */
export function withoutDraftLayers(
  stack: StackDefinition,
  layers: number,
  usual: readonly (readonly [RegExp, string])[],
): DecoderDefinition {
  const takes = (name: string, json: Json): boolean => {
    const [, layer] = /^model\.layers\.(\d+)\./.exec(name) ?? [];
    const first = layerCount(json, layers);
    const count = number(json, 'num_nextn_predict_layers', number(json, 'num_mtp_layers', 1));
    return layer === undefined || Number(layer) < first || Number(layer) >= first + count;
  };
  return {
    ...stack,
    takes,
    load: (loader, json, ...rest) => {
      const names = loader.checkpoint.names().filter((name) => takes(name, json));
      return stack.load(withUsualNames(withTensors(loader, names), usual), json, ...rest);
    },
  };
}

/**
 * Extends a text model's definition to multimodal checkpoints, of which it loads the text part; `hasHead`: with the draft head, `mtp.*`.
 */
export function textPart(text: StackDefinition, { hasHead = false } = {}): DecoderDefinition {
  return {
    ...text,
    takes: (name) => isOfText(name, hasHead),
    parseConfig: (json) => text.parseConfig(textConfig(json)),
    expectShard: (json, shard) => text.expectShard(textConfig(json), shard),
    workspace: (device, json, rows, logitRows, kept) => text.workspace(device, textConfig(json), rows, logitRows, kept),
    load: (loader, json, context, shard) => text.load(textWeights(loader, hasHead), textConfig(json), context, shard),
  };
}
