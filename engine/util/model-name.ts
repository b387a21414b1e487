/** Names that models are served by. */

/** By a model's path: the folder's name, or the file's without what it is cut into, quantised as and written as (Qwen3-0.6B-Q4_K_M.gguf is Qwen3-0.6B). */
export function modelName(path: string): string {
  const name = path.replace(/[\\/]+$/, '').replace(/^.*[\\/]/, '');
  return /\.gguf$/i.test(name) ? name.slice(0, -'.gguf'.length).replace(PART, '').replace(QUANTISATION, '') : name;
}

const PART = /-\d{5}-of-\d{5}$/;
/** How files say it: Q4_K_M, q8_0, UD-Q4_K_XL, IQ4_XS, bf16, MXFP4_MOE. */
const QUANTISATION = /[-._](UD-)?(I?Q\d[A-Z0-9_]*|B?F16|F32|MXFP4(_MOE)?)$/i;
