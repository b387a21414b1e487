/** Messages about model files in formats that are not supported: which format it is, and what to do. Used by server and page alike. */
import { fp8Scheme } from './fp8-config.ts';
import type { Fp8Scheme } from './fp8-config.ts';
import { integerFormat, integerScheme } from './integer-config.ts';
import type { IntegerScheme } from './integer-config.ts';
import { describe, isObject } from './json.ts';
import type { Json } from './json.ts';

const SAFETENSORS = 'a folder with config.json, tokenizer.json and model.safetensors';
const ORIGIN = `take the repository it was made from (${SAFETENSORS})`;

interface Format {
  readonly pattern: RegExp;
  readonly what: string;
  readonly advice: string;
}

/** Formats by file name; the first that matches is used. */
const FORMATS: readonly Format[] = [
  {
    pattern: /^(?!.*mmproj[^\\/]*$)(?!.*imatrix).*\.gguf$/i,
    what: 'is a GGUF file',
    advice: 'give the file itself, not the folder that it is in',
  },
  {
    pattern: /\.gguf$/i,
    what: 'belongs to a language model and is none (a projector of images, or statistics of quantisation)',
    advice: "give the model's own file",
  },
  { pattern: /\.onnx(_data)?$/i, what: 'is an ONNX model, which is not read (but for Kokoro with its voices beside it)', advice: ORIGIN },
  {
    pattern: /\.(pth|pt|ckpt)$|^pytorch_model.*\.bin$/i,
    what: 'holds pickled PyTorch weights, which are not read because unpickling can run code (but for Kokoro with its voices beside it)',
    advice: 'write them as safetensors: safetensors.torch.save_file(state_dict, "model.safetensors"), or transformers\' save_pretrained',
  },
  { pattern: /\.(bin|h5|msgpack|tflite|mlmodel|engine|pte)$/i, what: 'holds weights in a format that is not read', advice: ORIGIN },
  {
    pattern: /\.safetensors$/i,
    what: 'is a single file',
    advice: `give the folder that holds it: ${SAFETENSORS}`,
  },
];

/** Number of bytes at the start of a file by which formats are recognised. */
const HEAD_BYTES = 8;
const PICKLE = [0x80, 0x02];
/** Magic bytes by which files with uninformative names are recognised. */
const MAGIC: readonly (readonly [readonly number[], string])[] = [
  [[0x47, 0x47, 0x55, 0x46], '.gguf'],
  [[0x50, 0x4b, 0x03, 0x04], '.pth'],
  [PICKLE, '.pth'],
];

/** The name that tells the format of a file that begins with these bytes. */
function formatOf(head: Uint8Array): string | undefined {
  const [magic, name] = MAGIC.find(([bytes]) => bytes.every((byte, i) => head[i] === byte)) ?? [];
  // A safetensors file begins with its header's length in eight bytes, and one of 640 bytes as a pickle does; but no pickle has only zeros behind four bytes.
  const isLength = head.length === HEAD_BYTES && head.subarray(4).every((byte) => byte === 0);
  return magic === PICKLE && isLength ? undefined : name;
}

/** "version ", with which a Git LFS pointer begins: git has one in place of a large file that was not fetched. */
const LFS_POINTER = [0x76, 0x65, 0x72, 0x73, 0x69, 0x6f, 0x6e, 0x20];

/** Says what a model file in a folder is and what to do, as a clause about it ("is a GGUF file; …"); undefined for an unknown format. `head` are its first bytes. */
export function describeForeignFile(name: string, head: Uint8Array = new Uint8Array()): string | undefined {
  if (LFS_POINTER.every((byte, i) => head[i] === byte))
    return "is a pointer of Git LFS, not the file itself; fetch that with 'git lfs pull'";
  const format = FORMATS.find(({ pattern }) => pattern.test(formatOf(head) ?? name));
  return format && `${format.what}; ${format.advice}`;
}

/** Says what a file is that was given where only a folder is supported, and what to do; undefined for an unknown format. `head` are its first bytes. */
export function describeLoneFile(name: string, head: Uint8Array): string | undefined {
  const isGguf = MAGIC.some(([bytes, format]) => format === '.gguf' && bytes.every((byte, i) => head[i] === byte));
  if (isGguf) return 'is a GGUF file, which is read as a chat model only';
  const found = describeForeignFile(name, head);
  // A file that is only named .gguf: the advice for GGUF files would not help.
  const isNamedSo = /\.gguf$/i.test(name) && found === describeForeignFile(name);
  return isNamedSo ? 'is named like a GGUF file and is none: it does not begin with "GGUF"; fetch it again' : found;
}

/** Says what to do about a folder without safetensors, by its first file of a known format; undefined if it has none. */
export function describeForeignFolder(names: readonly string[]): string | undefined {
  for (const { pattern, what, advice } of FORMATS) {
    const name = names.find((file) => pattern.test(file) && !/\.safetensors$/i.test(file));
    if (name !== undefined) return `${name} ${what}; ${advice}`;
  }
  return undefined;
}

/** A repository's name on the Hugging Face hub, such as `Qwen/Qwen3-0.6B`. */
const HUB_ID = /^[\w-][\w.-]*\/[\w-][\w.-]*$/;

/** Says what to do about a Hugging Face id given where a folder is expected; undefined if it does not look like one. */
export function describeHubId(path: string): string | undefined {
  if (!HUB_ID.test(path)) return undefined;
  return `it looks like a model of the Hugging Face hub; the engine fetches nothing, so give the folder that it was fetched to`;
}

/** Common names of quantisation methods, by `quant_method` of quantization_config. */
const QUANTIZED: ReadonlyMap<unknown, string> = new Map([
  ['gptq', 'GPTQ'],
  ['awq', 'AWQ'],
  ['fp8', 'FP8'],
  ['fbgemm_fp8', 'FP8'],
  ['bitsandbytes', 'bitsandbytes'],
  ['compressed-tensors', 'compressed-tensors'],
  ['hqq', 'HQQ'],
  ['quanto', 'quanto'],
  ['aqlm', 'AQLM'],
  ['auto-round', 'AutoRound'],
  ['torchao', 'torchao'],
]);

/** What config.json says of how weights are quantised, where they are. */
export interface WeightSchemes {
  readonly fp8?: Fp8Scheme | undefined;
  readonly integers?: IntegerScheme | undefined;
}

/** Says why the quantised weights that a config.json describes are not supported; undefined if they are, or if they are plain. */
export function describeQuantization(config: Json): string | undefined {
  // MLX calls it `quantization` and names no method.
  const settings = config['quantization_config'] ?? config['quantization'];
  if (settings === undefined || settings === null) return undefined;
  const found = (isObject(settings) ? fp8Scheme(settings) : undefined) ?? integerScheme(config);
  if (found !== undefined && typeof found !== 'string') return undefined;
  const method = isObject(settings) ? settings['quant_method'] : undefined;
  // MXFP4's tensors are recognised by their names (weights/mxfp4-checkpoint.ts).
  if (method === 'mxfp4') return undefined;
  const name = QUANTIZED.get(method) ?? (config['quantization'] !== undefined && method === undefined ? 'MLX' : describe(method ?? null));
  const why = found === undefined ? 'which is not read' : `and ${found}`;
  return `the weights are quantised with ${name}, ${why}; take the model they were made from, in f32, f16 or bf16, or a GGUF file of it`;
}

/** The schemes of a config.json, as far as it has some that are supported. */
export function weightSchemesOf(config: Json): WeightSchemes {
  const { quantization_config: settings } = config;
  const [fp8, integers] = [isObject(settings) ? fp8Scheme(settings) : undefined, integerScheme(config)];
  return { ...(typeof fp8 === 'object' && { fp8 }), ...(typeof integers === 'object' && { integers }) };
}

/** The name of the format of the weights that a config.json describes, such as `AWQ 4-bit`; undefined where they are floats. */
export function formatOfWeights(config: Json): string | undefined {
  const { integers } = weightSchemesOf(config);
  return integers && integerFormat(integers);
}
