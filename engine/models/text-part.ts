/** The text part of a checkpoint that also sees or hears: its configuration stands in `text_config`, its weights below a prefix. */
import type { Json } from '../util/json.ts';
import { isObject } from '../util/json.ts';
import type { Checkpoint } from '../weights/checkpoint.ts';
import type { DecoderDefinition, StackDefinition } from './decoder.ts';
import type { WeightLoader } from './weight-loader.ts';

/** Where published checkpoints have the text part: as transformers 4 wrote them, and as transformers 5 does. */
const PREFIXES: readonly (readonly [stored: string, name: string])[] = [
  ['language_model.model.', 'model.'],
  ['language_model.lm_head.', 'lm_head.'],
  ['model.language_model.', 'model.'],
];

/** Parts that a text model does not have. */
const OTHER_PARTS = /^(model\.)?(vision_tower|vision_model|multi_modal_projector|embed_vision|audio_tower|embed_audio|visual)\./;
/** The head that guesses the token after the next. */
const GUESSING_HEAD = /^mtp\./;

/** Whether a tensor is of the text part; of its guessing head only where that is asked for. */
function isOfText(name: string, hasHead: boolean): boolean {
  return !OTHER_PARTS.test(name) && (hasHead || !GUESSING_HEAD.test(name));
}

/**
 * config.json of the text part; the file itself where it is of a text model alone. What ends an answer is the whole model's to say first: its text part often has
 * the default of its class (transformers, GenerationConfig.from_model_config).
 */
export function textConfig(json: Json): Json {
  const text = json['text_config'];
  if (!isObject(text)) return json;
  const eos_token_id = json['eos_token_id'] ?? text['eos_token_id'];
  // transformers 4 asks the text part, and transformers 5 the whole model; where they differ the weights say whether the head is the table of tokens.
  const [whole, part] = [json, text].map((config) => config['tie_word_embeddings'] ?? undefined);
  const differ = whole !== undefined && part !== undefined && whole !== part;
  return { ...json, ...text, eos_token_id, ...(differ && { tie_word_embeddings: null }) };
}

/** A loader of the text part's weights under the names that a text model's have. */
export function textWeights(loader: WeightLoader, hasHead = false): WeightLoader {
  const stored = new Map<string, string>();
  for (const name of loader.checkpoint.names()) {
    if (!isOfText(name, hasHead)) continue;
    const [prefix, own] = PREFIXES.find(([prefix]) => name.startsWith(prefix)) ?? ['', ''];
    stored.set(own + name.slice(prefix.length), name);
  }
  return loader.over(renamed(loader.checkpoint, stored));
}

/** A checkpoint under other names, [name, name in `from`]; what is not among them is left out. */
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

/** A loader by the names that other families have, made of a checkpoint's own by all of these replacements in turn. */
export function withUsualNames(loader: WeightLoader, usual: readonly (readonly [RegExp, string])[]): WeightLoader {
  const { checkpoint } = loader;
  const names = checkpoint
    .names()
    .map((stored) => [usual.reduce((name, [own, other]) => name.replace(own, other), stored), stored] as const);
  return loader.over(renamed(checkpoint, new Map(names)));
}

/** A text model's definition for checkpoints of the text model alone and of one that also sees or hears; `hasHead`: it takes `mtp.*` too. */
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
