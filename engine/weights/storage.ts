/** How matrices are stored on a device: as floats, or in quantised blocks. */
import type { WeightStorage } from '../config.ts';
import { product } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import { BLOCK, rowWords } from './block-format.ts';
import { BLOCK_FORMATS } from './block-types.ts';
import type { BlockType } from './block-types.ts';
import type { Checkpoint, TensorInfo } from './checkpoint.ts';

/** Float types. f16 is read through unpack2x16float, so it works on adapters without the shader-f16 feature. */
export type FloatType = 'f32' | 'f16';

/** Types that float weights can be quantised to at load. */
export type QuantizedType = Extract<BlockType, 'Q8_0' | 'Q4_0'>;

/** Storage of a weight matrix. */
export type WeightType = FloatType | BlockType;

/** Whether a type is block-quantised. */
export function isBlockType(type: WeightType): type is BlockType {
  return type !== 'f32' && type !== 'f16';
}

/** How a matrix is to be loaded; `columns` are the values of a row to keep, default all. */
export interface MatrixRequest {
  readonly columns?: Range | undefined;
  /** The matrix is an embedding table too, so it gets at least 8 bits. */
  readonly isTable?: boolean;
  /** The place that its kernels read from; default: that of most kernels. */
  readonly place?: 'buffer' | 'texture' | undefined;
}

/**
 * The block type in which a matrix stays as the file has it; undefined where it is not in blocks, where `keepBlocks` is off, or where the
 * columns would cut a block.
 */
export function keptBlocks({ blocks }: TensorInfo, { keepBlocks }: WeightStorage, { columns }: MatrixRequest = {}): BlockType | undefined {
  if (!blocks || !keepBlocks) return undefined;
  const { values } = BLOCK_FORMATS[blocks];
  return columns && (columns.from % values !== 0 || columns.to % values !== 0) ? undefined : blocks;
}

/**
 * The type that a matrix with rows of `width` values is stored as, where its blocks are not kept: floats where no whole number of blocks
 * fills a row.
 */
export function packedType({ float, quantization }: WeightStorage, width: number, isTable = false): FloatType | QuantizedType {
  if (quantization === 'none' || width % BLOCK !== 0) return float;
  return quantization === 'q4_0' && !isTable ? 'Q4_0' : 'Q8_0';
}

/** Bytes of a matrix on a device, without padding. */
export function matrixBytes(type: WeightType, rows: number, width: number): number {
  if (isBlockType(type)) return rows * 4 * rowWords(BLOCK_FORMATS[type], width / BLOCK).all;
  return rows * width * (type === 'f16' ? 2 : 4);
}

/** Names of tensors that stack a layer's experts: of most families, and Granite's. */
const STACKED = /\.experts\.[a-z_]+$|\.block_sparse_moe\.(in|out)put_linear\.weight$/;
/** Names of embedding tables. */
const TABLES = /(?:^|\.)(?:embed_tokens|embed_tokens_per_layer|embed_in|embedding|word_embeddings|wte)\.weight$/;

/** Approximate device bytes of a tensor: matrices in their storage type, tensors of more dimensions as floats, vectors as f32. */
function tensorBytes(name: string, info: TensorInfo, storage: WeightStorage): number {
  const isStacked = info.shape.length === 3 && STACKED.test(name);
  const [rows = 1, width = 1, ...rest] = isStacked ? [info.shape[0]! * info.shape[1]!, info.shape[2]!] : info.shape;
  if (info.shape.length < 2) return product(info.shape) * 4;
  if (rest.length > 0) return matrixBytes(storage.float, 1, product(info.shape));
  return matrixBytes(keptBlocks(info, storage) ?? packedType(storage, width, TABLES.test(name)), rows, width);
}

/** A model's own choice of storage for a tensor, given what was asked for. */
export type StorageRule = (name: string, asked: WeightStorage) => WeightStorage;

/** Which tensors of a checkpoint a model takes (default all), and how they are stored (default as asked for). */
export interface WeightRules {
  readonly takes?: (name: string) => boolean;
  readonly storage?: StorageRule;
}

/** Approximate device bytes of all tensors that a model takes of a checkpoint, stored as `asked` unless its rules say otherwise. */
export function checkpointBytes(
  checkpoint: Checkpoint,
  asked: WeightStorage,
  { takes = () => true, storage = () => asked }: WeightRules = {},
): number {
  const names = checkpoint.names().filter(takes);
  return names.reduce((sum, name) => sum + tensorBytes(name, checkpoint.tensor(name)!, storage(name, asked)), 0);
}

/** Device bytes of weights that are about to be loaded: as they are stored, and by quantisation setting as they could be. */
export function weightDemand(
  checkpoint: Checkpoint,
  storage: WeightStorage,
  rules?: WeightRules,
): { readonly weights: number; readonly quantised: Readonly<Record<string, number>> } {
  const quantised = (['q8_0', 'q4_0'] as const).map(
    (quantization) => [quantization, checkpointBytes(checkpoint, { ...storage, quantization }, rules)] as const,
  );
  return { weights: checkpointBytes(checkpoint, storage, rules), quantised: Object.fromEntries(quantised) };
}
