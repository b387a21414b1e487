/** Names that models are served by. */

/**
 * By a model's path: the folder's name, or the file's without its format and, of GGUF, without what it is cut into and quantised as (Qwen3-0.6B-Q4_K_M.gguf is
 * Qwen3-0.6B). Of a file whose name says nothing (model.bin), its folder's.
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
/** How files say it: Q4_K_M, q8_0, UD-Q4_K_XL, IQ4_XS, bf16, MXFP4_MOE. */
const QUANTISATION = /[-._](UD-)?(I?Q\d[A-Z0-9_]*|B?F16|F32|MXFP4(_MOE)?)$/i;
