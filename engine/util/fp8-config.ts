/** Reads how FP8 weights are scaled from config.json, in the forms of transformers (`fp8`, `fbgemm_fp8`), compressed-tensors and ModelOpt. */
import { describe, isObject } from './json.ts';
import type { Json } from './json.ts';

/** How a checkpoint's FP8 weights are scaled; whether per matrix or per row, the shapes of the scales tell. */
export interface Fp8Scheme {
  /** Rows and columns that share a scale; absent = one scale per matrix or per row. */
  readonly block?: readonly [number, number];
}

/** Reads the scheme of a `quantization_config`; a string says in one clause why it is not supported, undefined means that it is not FP8. */
export function fp8Scheme(settings: Json): Fp8Scheme | string | undefined {
  switch (settings['quant_method']) {
    case 'fp8':
      return blockScheme('weight_block_size', settings['weight_block_size'] === undefined ? USUAL_BLOCK : settings['weight_block_size']);
    case 'fbgemm_fp8':
      return {};
    case 'modelopt':
      return MODELOPT.has(settings['quant_algo']) ? {} : undefined;
    case 'compressed-tensors':
      return compressedScheme(settings);
    default:
      return undefined;
  }
}

/** Default block size of transformers. */
const USUAL_BLOCK = [128, 128];

/** ModelOpt's names for one scale per matrix and one scale per row. */
const MODELOPT: ReadonlySet<unknown> = new Set(['FP8', 'FP8_PER_CHANNEL_PER_TOKEN']);

/** Schemes by `strategy` of a config group of compressed-tensors. */
const STRATEGIES = new Map<unknown, (weights: Json) => Fp8Scheme | string>([
  ['tensor', () => ({})],
  ['channel', () => ({})],
  ['block', (weights) => blockScheme('block_structure', weights['block_structure'])],
  ['group', ({ group_size: size }) => blockScheme('group_size', [1, size])],
]);

function compressedScheme(settings: Json): Fp8Scheme | string | undefined {
  const groups = isObject(settings['config_groups']) ? Object.values(settings['config_groups']) : [];
  const weights = groups.map((group) => (isObject(group) && isObject(group['weights']) ? group['weights'] : {}));
  if (weights.length === 0 || weights.some((one) => one['type'] !== 'float' || one['num_bits'] !== 8)) return undefined;
  const sparsity = settings['sparsity_config'];
  if (isObject(sparsity) && (sparsity['format'] ?? 'dense') !== 'dense') return 'sparse weights are not read';
  if (weights.some((one) => one['symmetric'] === false)) return 'FP8 weights with zero points are not read';
  const schemes = weights.map((one) => {
    const strategy = one['strategy'] ?? 'tensor';
    return STRATEGIES.get(strategy)?.(one) ?? `the strategy ${describe(strategy)} of FP8 weights is not known`;
  });
  const problem = schemes.find((scheme) => typeof scheme === 'string');
  if (problem !== undefined) return problem;
  const blocks = new Set(schemes.map((scheme) => String((scheme as Fp8Scheme).block ?? '')).filter((block) => block !== ''));
  if (blocks.size > 1) return `FP8 weights in blocks of several sizes (${[...blocks].join(' and ')}) are not read`;
  return schemes.find((scheme) => (scheme as Fp8Scheme).block) ?? {};
}

/** Reads a block size, [rows, columns] or 'RxC'; null = no blocks. A string says why it is invalid. */
function blockScheme(name: string, block: unknown): Fp8Scheme | string {
  if (block === undefined || block === null) return {};
  const sizes = typeof block === 'string' ? block.split('x').map(Number) : block;
  const fits = Array.isArray(sizes) && sizes.length === 2 && sizes.every((size) => Number.isSafeInteger(size) && size > 0);
  return fits ? { block: sizes as [number, number] } : `${name} is ${describe(block)}, expected two sizes`;
}
