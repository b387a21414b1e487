/** Default names of models. */

/**
 * Derives a model's name from its path: the folder's name, or the file's without its extension. A GGUF file's name also loses its part number and quantisation
 * (Qwen3-0.6B-Q4_K_M.gguf becomes Qwen3-0.6B). A file with a generic name (model.bin) is named after its folder.
 */
export function modelName(path: string): string {
  const [name = '', ...folders] = path
    .replace(/[\\/]+$/, '')
    .split(/[\\/]/)
    .reverse();
  if (/\.gguf$/i.test(name)) return name.slice(0, -'.gguf'.length).replace(PART, '').replace(QUANTISATION, '');
  const bare = name.replace(FORMAT, '');
  const named = bare !== name && GENERIC.test(bare) ? folders.find((folder) => folder !== 'onnx') : undefined;
  return named || bare;
}

const FORMAT = /\.(bin|onnx|safetensors|pth?)$/i;
const GENERIC = /^(pytorch_)?model([-_.](int8|fp16|f16|quantized|q4|q8))?$/i;
const PART = /-\d{5}-of-\d{5}$/;
/** Quantisation in a GGUF file's name, such as Q4_K_M, q8_0, UD-Q4_K_XL, IQ4_XS, TQ1_0, bf16 or MXFP4_MOE. */
const QUANTISATION = /[-._](UD-)?([IT]?Q\d[A-Z0-9_]*|B?F16|F32|(MX|NV)FP4(_MOE)?)$/i;
