/** The two ends of a decoder, tokens to hidden states and hidden states to logits, with one table for both where they are tied. */
import type { Tensor } from '../../gpu/tensor.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { floatStorage } from '../../config.ts';
import type { Range } from '../../util/math.ts';
import type { StorageRule } from '../../weights/storage.ts';
import type { WeightLoader } from '../weight-loader.ts';
import { shareOf } from '../shard.ts';
import type { Shard } from '../shard.ts';

export interface VocabularyConfig {
  readonly hidden: number;
  readonly vocabulary: number;
  /**
   * Whether the head is the embedding table. Undefined: only if the checkpoint has no head. True: unless the checkpoint has a head with
   * other values.
   */
  readonly tied: boolean | undefined;
  /** Offset added to the weights of norms; default 0. */
  readonly normOffset?: number | undefined;
  /** Norms before halves of layers and the last norm are layer norms, with biases or without; absent = RMS norms. */
  readonly layerNorm?: { readonly hasBias: boolean } | undefined;
  /** Factor of the logits; default 1. */
  readonly logitScale?: number | undefined;
  /** Learned positions are added to the embeddings: `count` rows of the table, from `offset` on; absent = none are. */
  readonly positions?: { readonly count: number; readonly offset: number } | undefined;
  /** Logits have biases. */
  readonly headBias?: boolean | undefined;
}

/** A rank's slices of the embedding table and the head, on the shards with the first and the last layer. */
export interface Vocabulary {
  readonly embedding: LinearWeight | undefined;
  /** [S, C] f32, on the shards with the first layer. */
  readonly positions: Tensor | undefined;
  readonly head: VocabularyHead | undefined;
  /** Weight values held here that another shard counts as its parameters. */
  readonly repeated: number;
}

export interface VocabularyHead {
  readonly norm: Tensor;
  readonly shift: Tensor | undefined;
  readonly weight: LinearWeight;
  /** [V], of the rank's tokens. */
  readonly bias: Tensor | undefined;
}

/** Tokens are dealt out in multiples of this, the tokens per word of a grammar's bit mask. */
const TOKEN_UNIT = 32;

/** A rank's range of token ids. */
export function tokenShare(vocabulary: number, shard: Shard): Range {
  return shareOf('tokens', vocabulary, TOKEN_UNIT, shard);
}

const NAMES = {
  table: 'model.embed_tokens.weight',
  positions: 'model.embed_positions.weight',
  norm: 'model.norm',
  head: 'lm_head.weight',
  headBias: 'lm_head.bias',
} as const;

/**
 * Rows compared at each of three places. That is enough, since training a head separately changes all of it, and reading it whole would
 * download it.
 */
const COMPARED = 256;

/**
 * Whether the head is the embedding table. A head that differs from the table was trained separately, by a tool that left
 * `tie_word_embeddings` as it was: it counts, as in transformers 5, vLLM and llama.cpp. Many checkpoints store the table twice, and the
 * copy is not read.
 */
async function isTied({ checkpoint }: WeightLoader, { tied, hidden, vocabulary }: VocabularyConfig): Promise<boolean> {
  const shape = checkpoint.tensor(NAMES.head)?.shape;
  if (tied !== true || !shape) return tied ?? !shape;
  if (shape[0] !== vocabulary || shape[1] !== hidden) return true;
  const count = Math.min(COMPARED, vocabulary);
  for (const first of [0, (vocabulary - count) >> 1, vocabulary - count]) {
    const elements = { from: first * hidden, to: (first + count) * hidden };
    const [table, head] = [await checkpoint.read(NAMES.table, elements), await checkpoint.read(NAMES.head, elements)];
    if (head.some((value, i) => value !== table[i])) return false;
  }
  return true;
}

/** Loads `model.embed_tokens`, `model.norm` and `lm_head`, as far as the shard needs them. */
export async function loadVocabulary(
  loader: WeightLoader,
  config: VocabularyConfig,
  tokens: Range,
  { isFirst, isLast }: { readonly isFirst: boolean; readonly isLast: boolean },
): Promise<Vocabulary> {
  const { hidden, vocabulary } = config;
  const names = NAMES;
  const tied = await isTied(loader, config);
  const table = isFirst || (isLast && tied) ? await loader.table(names.table, vocabulary, hidden, tokens) : undefined;
  const head = isLast && {
    weight: tied ? table! : await loader.linear(names.head, vocabulary, hidden, { rows: tokens }),
    // The head is linear, so scaling the norm's weights scales the logits.
    norm: await loader.tensor(`${names.norm}.weight`, [hidden], config.normOffset, config.logitScale),
    shift: await normShift(loader, names.norm, config),
    bias: config.headBias
      ? await loader.mergedVector(names.headBias, [{ name: names.headBias, size: vocabulary, rows: tokens }])
      : undefined,
  };
  if (!isLast) for (const kind of ['weight', 'bias']) loader.skip(`${names.norm}.${kind}`);
  if (tied || !isLast) loader.skip(names.head);
  if (config.headBias && !isLast) loader.skip(names.headBias);
  if (!table) loader.skip(names.table);
  const positions = config.positions && (await loadPositions(loader, config.positions, hidden, isFirst));
  return { embedding: table, positions, head: head || undefined, repeated: table && !isFirst ? vocabulary * hidden : 0 };
}

/** The table of learned positions by its names in checkpoints. */
const POSITIONS = /(?:^|\.)(?:wpe|embed_positions)\.weight$/;

/** Storage of the table of learned positions: f32, because it is little beside the rest. */
export const positionsStorage: StorageRule = (name, asked) => (POSITIONS.test(name) ? floatStorage('f32') : asked);

async function loadPositions(
  loader: WeightLoader,
  { count, offset }: { readonly count: number; readonly offset: number },
  hidden: number,
  isTaken: boolean,
): Promise<Tensor | undefined> {
  const name = NAMES.positions;
  if (!isTaken) {
    loader.skip(name);
    return undefined;
  }
  const values = await loader.data(name, [offset + count, hidden], { rows: { from: offset, to: offset + count } });
  return loader.device.upload(name, 'f32', [count, hidden], loader.storable(name, values, 'f32'));
}

/** What the layer norm `at` adds to its normed rows, times `logitScale`: zeros where it has no bias. Undefined where norms are RMS norms. */
export async function normShift(
  loader: WeightLoader,
  at: string,
  { hidden, layerNorm, logitScale = 1 }: Pick<VocabularyConfig, 'hidden' | 'layerNorm' | 'logitScale'>,
): Promise<Tensor | undefined> {
  if (!layerNorm) return undefined;
  if (layerNorm.hasBias) return loader.tensor(`${at}.bias`, [hidden], 0, logitScale);
  return loader.mergedVector(`${at} shift`, [{ name: undefined, size: hidden }]);
}
