/** Decoder definitions of the chat model families that model-types.ts names. Nothing below imports this. */
import { expectFamily } from '../model-types.ts';
import type { FamilyOf } from '../model-types.ts';
import type { Json } from '../util/json.ts';
import type { DecoderDefinition } from './decoder.ts';
import { APERTUS } from './apertus/apertus.ts';
import { ARCEE } from './arcee/arcee.ts';
import { COHERE } from './cohere/cohere.ts';
import { DEEPSEEK } from './deepseek/deepseek.ts';
import { DOTS1 } from './dots1/dots1.ts';
import { ERNIE4_5 } from './ernie4-5/ernie4-5.ts';
import { ERNIE4_5_MOE } from './ernie4-5-moe/ernie4-5-moe.ts';
import { EXAONE4 } from './exaone4/exaone4.ts';
import { FALCON_H1 } from './falcon-h1/falcon-h1.ts';
import { FLEX_OLMO } from './flex-olmo/flex-olmo.ts';
import { GEMMA } from './gemma/gemma.ts';
import { GEMMA1 } from './gemma1/gemma1.ts';
import { GEMMA3N } from './gemma3n/gemma3n.ts';
import { GEMMA4 } from './gemma4/gemma4.ts';
import { GLM } from './glm/glm.ts';
import { GLM4 } from './glm4/glm4.ts';
import { GLM4_MOE } from './glm4-moe/glm4-moe.ts';
import { GPT2 } from './gpt2/gpt2.ts';
import { GPT_NEOX } from './gpt-neox/gpt-neox.ts';
import { GPT_OSS } from './gpt-oss/gpt-oss.ts';
import { GRANITE_HYBRID } from './granite-hybrid/granite-hybrid.ts';
import { GRANITE_MOE } from './granitemoe/granitemoe.ts';
import { HUNYUAN } from './hunyuan/hunyuan.ts';
import { HUNYUAN_MOE } from './hunyuan-moe/hunyuan-moe.ts';
import { LFM2 } from './lfm2/lfm2.ts';
import { LLAMA } from './llama/llama.ts';
import { MINICPM3 } from './minicpm3/minicpm3.ts';
import { MINIMAX_M2 } from './minimax-m2/minimax-m2.ts';
import { MINISTRAL } from './ministral/ministral.ts';
import { MIXTRAL } from './mixtral/mixtral.ts';
import { NEMOTRON } from './nemotron/nemotron.ts';
import { NEMOTRON_H } from './nemotron-h/nemotron-h.ts';
import { OLMO } from './olmo/olmo.ts';
import { OLMOE } from './olmoe/olmoe.ts';
import { OPT } from './opt/opt.ts';
import { PHI } from './phi/phi.ts';
import { PHI3 } from './phi3/phi3.ts';
import { PHIMOE } from './phimoe/phimoe.ts';
import { QWEN2_MOE } from './qwen2-moe/qwen2-moe.ts';
import { QWEN3_5 } from './qwen3-5/qwen3-5.ts';
import { QWEN3_MOE } from './qwen3-moe/qwen3-moe.ts';
import { QWEN3_NEXT } from './qwen3-next/qwen3-next.ts';
import { SEED_OSS } from './seed-oss/seed-oss.ts';
import { STABLELM } from './stablelm/stablelm.ts';
import { STARCODER2 } from './starcoder2/starcoder2.ts';

const DECODERS: Readonly<Record<FamilyOf<'chat'>, DecoderDefinition>> = {
  llama: LLAMA,
  gemma1: GEMMA1,
  gemma: GEMMA,
  gemma3n: GEMMA3N,
  gemma4: GEMMA4,
  apertus: APERTUS,
  arcee: ARCEE,
  cohere: COHERE,
  deepseek: DEEPSEEK,
  dots1: DOTS1,
  'ernie4-5': ERNIE4_5,
  'ernie4-5-moe': ERNIE4_5_MOE,
  exaone4: EXAONE4,
  'falcon-h1': FALCON_H1,
  'flex-olmo': FLEX_OLMO,
  'granite-hybrid': GRANITE_HYBRID,
  hunyuan: HUNYUAN,
  'hunyuan-moe': HUNYUAN_MOE,
  minicpm3: MINICPM3,
  'minimax-m2': MINIMAX_M2,
  ministral: MINISTRAL,
  mixtral: MIXTRAL,
  nemotron: NEMOTRON,
  'nemotron-h': NEMOTRON_H,
  olmo: OLMO,
  olmoe: OLMOE,
  gpt2: GPT2,
  'gpt-neox': GPT_NEOX,
  opt: OPT,
  phi: PHI,
  phi3: PHI3,
  phimoe: PHIMOE,
  'seed-oss': SEED_OSS,
  stablelm: STABLELM,
  starcoder2: STARCODER2,
  'qwen2-moe': QWEN2_MOE,
  'qwen3-moe': QWEN3_MOE,
  'qwen3-next': QWEN3_NEXT,
  'qwen3-5': QWEN3_5,
  granitemoe: GRANITE_MOE,
  glm: GLM,
  glm4: GLM4,
  'glm4-moe': GLM4_MOE,
  lfm2: LFM2,
  'gpt-oss': GPT_OSS,
};

/** The decoder definition for a config.json; throws EngineError('unsupported'), listing the known types. */
export function decoderFor(json: Json): DecoderDefinition {
  return DECODERS[expectFamily(json, 'chat')];
}
