/** How matrices are stored on a device: numbers one by one, or blocks of a few bits. */
import type { WeightStorage } from '../config.ts';
import { product } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import { BLOCK, rowWords } from './block-format.ts';
import { BLOCK_FORMATS } from './block-types.ts';
import type { BlockType } from './block-types.ts';
import type { Checkpoint, TensorInfo } from './checkpoint.ts';

/** Numbers one by one. f16 is read through unpack2x16float, so it works on adapters without the shader-f16 feature. */
export type FloatType = 'f32' | 'f16';

/** What floats can be quantised to. */
export type QuantizedType = Extract<BlockType, 'Q8_0' | 'Q4_0'>;

/** Storage of a weight matrix. */
export type WeightType = FloatType | BlockType;

/** True for types in blocks of few bits. */
export function isBlockType(type: WeightType): type is BlockType {
  return type !== 'f32' && type !== 'f16';
}

/** What is wanted of a matrix; `columns` are the values of a row that are kept, default all. */
export interface MatrixRequest {
  readonly columns?: Range | undefined;
  /** It is looked up as well as multiplied, so that it has 8 bits at least. */
  readonly isTable?: boolean;
  /** Where what reads it wants it; default: where most kernels do. */
  readonly place?: 'buffer' | 'texture' | undefined;
}

/** The blocks of a file that stay as they are; undefined where the matrix has none, where they are not wanted, or where the columns would cut one. */
export function keptBlocks({ blocks }: TensorInfo, { keepBlocks }: WeightStorage, { columns }: MatrixRequest = {}): BlockType | undefined {
  if (!blocks || !keepBlocks) return undefined;
  const { values } = BLOCK_FORMATS[blocks];
  return columns && (columns.from % values !== 0 || columns.to % values !== 0) ? undefined : blocks;
}

/** What the values of a matrix with rows of `width` are stored as, where no blocks are kept: rows that no whole number of blocks fills stay floats. */
export function packedType({ float, quantization }: WeightStorage, width: number, isTable = false): FloatType | QuantizedType {
  if (quantization === 'none' || width % BLOCK !== 0) return float;
  return quantization === 'q4_0' && !isTable ? 'Q4_0' : 'Q8_0';
}

/** Bytes of a matrix on a device, without padding. */
export function matrixBytes(type: WeightType, rows: number, width: number): number {
  if (isBlockType(type)) return rows * 4 * rowWords(BLOCK_FORMATS[type], width / BLOCK).all;
  return rows * width * (type === 'f16' ? 2 : 4);
}

/** A layer's experts as one tensor: matrices one below the other. */
const STACKED = /\.experts\.[a-z_]+$/;
/** What models take as tables, under the names that their checkpoints give them. */
const TABLES = /(?:^|\.)(?:embed_tokens|embed_tokens_per_layer|embedding|word_embeddings)\.weight$/;

/** About the bytes of a tensor on a device: matrices as they are stored, what has more dimensions in floats, vectors in f32. */
function tensorBytes(name: string, info: TensorInfo, storage: WeightStorage): number {
  const isStacked = info.shape.length === 3 && STACKED.test(name);
  const [rows = 1, width = 1, ...rest] = isStacked ? [info.shape[0]! * info.shape[1]!, info.shape[2]!] : info.shape;
  if (info.shape.length < 2) return product(info.shape) * 4;
  if (rest.length > 0) return matrixBytes(storage.float, 1, product(info.shape));
  return matrixBytes(keptBlocks(info, storage) ?? packedType(storage, width, TABLES.test(name)), rows, width);
}

/** How a tensor is stored, of a model that stores some otherwise than it was asked to. */
export type StorageRule = (name: string, asked: WeightStorage) => WeightStorage;

/** What a model makes of a checkpoint: which tensors it takes, default all, and how they are stored, default as they are asked for. */
export interface WeightRules {
  readonly takes?: (name: string) => boolean;
  readonly storage?: StorageRule;
}

/** About the bytes on a device of all tensors that a model takes of a checkpoint, stored as `asked` unless its rules say otherwise. */
export function checkpointBytes(
  checkpoint: Checkpoint,
  asked: WeightStorage,
  { takes = () => true, storage = () => asked }: WeightRules = {},
): number {
  const names = checkpoint.names().filter(takes);
  return names.reduce((sum, name) => sum + tensorBytes(name, checkpoint.tensor(name)!, storage(name, asked)), 0);
}

/** checkpointBytes of weights that are about to be loaded, as they are stored and, by the value of the setting, as they could be quantised. */
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
