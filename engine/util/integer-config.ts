/**
 * Reads how weights are quantised to integers from config.json: GPTQ and AWQ as AutoGPTQ, GPTQModel, AutoAWQ and AutoRound write them, the
 * integers of compressed-tensors, MLX's affine quantisation, and bitsandbytes.
 */
import { describe, isObject } from './json.ts';
import type { Json } from './json.ts';

/** What config.json says of integers; the shapes of the tensors tell the rest. */
export type IntegerScheme = GptqScheme | AwqScheme | CompressedScheme | MlxScheme | BitsAndBytesScheme | Nvfp4Scheme;

interface Grouped {
  /** Columns that share a scale, by module where they differ; -1 = all of a row. */
  readonly groupSize: number;
}

export interface GptqScheme extends Grouped {
  readonly method: 'gptq';
  readonly bits: number;
  /** Zero points are stored minus one, as in all but `gptq_v2`. */
  readonly zerosBelow: boolean;
  /** Every zero point is the middle code. */
  readonly symmetric: boolean;
  /** Columns were quantised out of order, and g_idx says which group each is in. */
  readonly actOrder: boolean;
}

export interface AwqScheme extends Grouped {
  readonly method: 'awq';
}

export interface CompressedScheme {
  readonly method: 'compressed-tensors';
  /** Bits of the weights, in increasing order, if there are several. */
  readonly bits: readonly number[];
  /** No weights have zero points. */
  readonly symmetric: boolean;
}

export interface MlxScheme extends Grouped {
  readonly method: 'mlx';
  readonly bits: number;
  /** Group sizes of modules that have their own. */
  readonly groupSizes: ReadonlyMap<string, number>;
}

export interface BitsAndBytesScheme {
  readonly method: 'bitsandbytes';
  readonly bits: 4 | 8;
}

export interface Nvfp4Scheme {
  readonly method: 'nvfp4';
  /** Scales are divided by that of the whole matrix, as compressed-tensors stores it; else multiplied with it, as ModelOpt does. */
  readonly isDivided: boolean;
}

/** Common names of the methods. */
const NAMES = { gptq: 'GPTQ', awq: 'AWQ', 'compressed-tensors': 'compressed-tensors', mlx: 'MLX', bitsandbytes: 'bitsandbytes' } as const;

/** The name of a scheme's format, such as `GPTQ 4-bit`. */
export function integerFormat(scheme: IntegerScheme): string {
  if (scheme.method === 'nvfp4') return 'NVFP4';
  const bits = scheme.method === 'awq' ? [AWQ_BITS] : [scheme.bits].flat();
  return `${NAMES[scheme.method]} ${bits.join(' and ')}-bit`;
}

/** Reads the scheme of a config.json; a string says in one clause why it is not supported, undefined means that it is none of these. */
export function integerScheme(config: Json): IntegerScheme | string | undefined {
  const { quantization_config: settings, quantization } = config;
  // mlx-lm writes the same under both names, and names no method.
  if (isObject(quantization) && !isObject(settings)) return mlxScheme(quantization);
  if (!isObject(settings)) return undefined;
  if (settings['quant_method'] === undefined) return isObject(quantization) ? mlxScheme(quantization) : undefined;
  return METHODS.get(settings['quant_method'])?.(settings);
}

const METHODS = new Map<unknown, (settings: Json) => IntegerScheme | string | undefined>([
  ['gptq', gptqScheme],
  ['awq', awqScheme],
  ['compressed-tensors', compressedScheme],
  ['bitsandbytes', bitsAndBytesScheme],
  ['auto-round', autoRoundScheme],
  ['modelopt', ({ quant_algo: algorithm }) => (algorithm === 'NVFP4' ? { method: 'nvfp4', isDivided: false } : undefined)],
]);

/** AutoRound stores weights as AutoGPTQ or AutoAWQ does. */
function autoRoundScheme(settings: Json): IntegerScheme | string {
  const { packing_format: packing = 'auto_round:auto_gptq' } = settings;
  const [, layout] = /^(?:auto_round:)?auto_(gptq|awq)$/.exec(String(packing)) ?? [];
  if (layout === undefined)
    return `its packing_format ${describe(packing)} is not read, only "auto_round:auto_gptq" and "auto_round:auto_awq"`;
  return layout === 'awq' ? awqScheme({ ...settings, version: 'gemm' }) : gptqScheme({ ...settings, checkpoint_format: 'gptq' });
}

/** Storage of GPTQ's codes that other kernels' layouts are made from. */
const GPTQ_FORMATS: ReadonlySet<unknown> = new Set(['gptq', 'gptq_v2']);

function gptqScheme(settings: Json): IntegerScheme | string {
  const { bits, desc_act: actOrder = false, sym = true, dynamic } = settings;
  const format = settings['checkpoint_format'] ?? settings['format'] ?? 'gptq';
  if (bits !== 4 && bits !== 8) return `${describe(bits ?? null)} bits are not read, only 4 and 8`;
  if (!GPTQ_FORMATS.has(format) || settings['is_marlin_format'] === true) {
    return `its checkpoint_format ${settings['is_marlin_format'] === true ? '"marlin"' : describe(format)} is not read, only "gptq" and "gptq_v2"`;
  }
  const groupSize = groupSizeOf(settings['group_size'] ?? -1);
  if (typeof groupSize === 'string') return groupSize;
  // `dynamic` has settings of some modules.
  const own = isObject(dynamic) ? Object.values(dynamic).filter(isObject) : [];
  return {
    method: 'gptq',
    bits,
    groupSize,
    zerosBelow: format === 'gptq',
    symmetric: sym !== false && own.every((module) => module['sym'] !== false),
    actOrder: actOrder === true || own.some((module) => module['desc_act'] === true),
  };
}

const AWQ_BITS = 4;
/** Versions that store weights as GEMM does; the others are its kernels. */
const AWQ_VERSIONS: ReadonlySet<string> = new Set(['gemm', 'exllama', 'ipex']);

function awqScheme(settings: Json): IntegerScheme | string {
  const bits = settings['bits'] ?? settings['w_bit'] ?? AWQ_BITS;
  const version = settings['version'] ?? settings['checkpoint_format'] ?? settings['format'] ?? 'gemm';
  if (bits !== AWQ_BITS) return `${describe(bits)} bits are not read, only 4`;
  if (typeof version !== 'string' || !AWQ_VERSIONS.has(version.toLowerCase()) || settings['backend'] === 'llm-awq') {
    return `its version ${describe(settings['backend'] === 'llm-awq' ? 'llm-awq' : version)} is not read, only "gemm"`;
  }
  const groupSize = groupSizeOf(settings['group_size'] ?? settings['q_group_size'] ?? -1);
  return typeof groupSize === 'string' ? groupSize : { method: 'awq', groupSize };
}

function groupSizeOf(size: unknown): number | string {
  const fits = typeof size === 'number' && Number.isSafeInteger(size) && (size > 0 || size === -1);
  return fits ? size : `group_size is ${describe(size)}, expected a number of columns or -1`;
}

/** Formats of integers: packed in words, and bytes. `mixed-precision` names the format of each group. */
const COMPRESSED_FORMATS: ReadonlySet<unknown> = new Set(['pack-quantized', 'int-quantized', 'naive-quantized']);
const STRATEGIES: ReadonlySet<unknown> = new Set(['tensor', 'channel', 'group']);

function compressedScheme(settings: Json): IntegerScheme | string | undefined {
  const groups = isObject(settings['config_groups']) ? Object.values(settings['config_groups']).filter(isObject) : [];
  const weights = groups.flatMap((group) => (isObject(group['weights']) ? [{ format: group['format'], ...group['weights'] }] : []));
  if (weights.length > 0 && weights.every(isNvfp4(settings))) return { method: 'nvfp4', isDivided: true };
  if (weights.length === 0 || weights.some((one: Json) => (one['type'] ?? 'int') !== 'int')) return undefined;
  const sparsity = settings['sparsity_config'];
  if (isObject(sparsity) && (sparsity['format'] ?? 'dense') !== 'dense') return 'sparse weights are not read';
  const transforms = settings['transform_config'];
  if (isObject(transforms) && isObject(transforms['config_groups']) && Object.keys(transforms['config_groups']).length > 0) {
    return 'weights that need transforms (transform_config) are not read';
  }
  for (const one of weights as Json[]) {
    const format = one['format'] ?? settings['format'];
    if (!COMPRESSED_FORMATS.has(format)) return `integers in the format ${describe(format ?? null)} are not read`;
    const [strategy, bits] = [one['strategy'] ?? 'tensor', one['num_bits'] ?? 8];
    if (bits !== 4 && bits !== 8) return `${describe(bits)} bits are not read, only 4 and 8`;
    if (!STRATEGIES.has(strategy)) return `the strategy ${describe(strategy)} of integers is not known`;
  }
  const bits = [...new Set((weights as Json[]).map((one) => (one['num_bits'] ?? 8) as number))].sort((a, b) => a - b);
  return { method: 'compressed-tensors', bits, symmetric: (weights as Json[]).every((one) => one['symmetric'] !== false) };
}

/** Whether a group's weights are NVFP4. */
const isNvfp4 =
  ({ format: usual }: Json) =>
  ({ type, num_bits: bits, group_size: size, format }: Json): boolean =>
    type === 'float' && bits === 4 && size === 16 && (format ?? usual) === 'nvfp4-pack-quantized';

const MLX_BITS: ReadonlySet<unknown> = new Set([2, 3, 4, 5, 6, 8]);

function mlxScheme(settings: Json): IntegerScheme | string {
  const groupSizes = new Map<string, number>();
  // Settings of a module have its name; `false` leaves it as it is.
  const modules = Object.entries(settings).flatMap(([name, own]) => (isObject(own) ? [[name, own] as const] : []));
  for (const [name, own] of [['', settings] as const, ...modules]) {
    const [mode, size, bits] = [own['mode'] ?? 'affine', own['group_size'] ?? 64, own['bits'] ?? 4];
    if (mode !== 'affine') return `the mode ${describe(mode)} is not read, only "affine"`;
    if (!MLX_BITS.has(bits)) return `${describe(bits)} bits are not read, only ${[...MLX_BITS].join(', ')}`;
    const groupSize = groupSizeOf(size);
    if (typeof groupSize === 'string') return groupSize;
    groupSizes.set(name, groupSize);
  }
  return { method: 'mlx', bits: (settings['bits'] ?? 4) as number, groupSize: groupSizes.get('')!, groupSizes };
}

function bitsAndBytesScheme(settings: Json): IntegerScheme | string {
  const [four, eight] = [settings['load_in_4bit'] ?? settings['_load_in_4bit'], settings['load_in_8bit'] ?? settings['_load_in_8bit']];
  if (four !== true && eight !== true) return 'it says neither load_in_4bit nor load_in_8bit';
  return { method: 'bitsandbytes', bits: four === true ? 4 : 8 };
}
