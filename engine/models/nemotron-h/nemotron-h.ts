import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertsOr } from '../layers/experts.ts';
import { plainMlp } from '../layers/mlp.ts';
import { withTensors, withUsualNames } from '../text-part.ts';
import { parseNemotronHConfig } from './config.ts';

const STACK = decoderStack({
  parseConfig: parseNemotronHConfig,
  mlp: expertsOr('relu2', plainMlp('relu2')),
  // A layer has one half, and one norm.
  norms: { beforeAttention: 'input_layernorm', beforeMlp: 'input_layernorm' },
});

/** Nemotron-H's tensor names, mapped to those of other families. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^backbone\./, 'model.'],
  [/^model\.embeddings\./, 'model.embed_tokens.'],
  [/^model\.norm_f\./, 'model.norm.'],
  [/^(model\.layers\.\d+)\.norm\./, '$1.input_layernorm.'],
  [/\.mixer\.([qkvo]_proj)\./, '.self_attn.$1.'],
  [/\.mixer\.(in_proj|out_proj|conv1d|norm|A_log|D|dt_bias)\b/, '.mamba.$1'],
  [/\.mixer\./, '.mlp.'],
  [/\.mlp\.shared_experts\./, '.mlp.shared_expert.'],
  [/\.mlp\.gate\.e_score_correction_bias$/, '.mlp.expert_bias'],
];

/** Whether a tensor belongs to the model, and not to the head that guesses. */
function isOfModel(name: string): boolean {
  return !name.startsWith('mtp.');
}

/** Nemotron-H: layers of Mamba 2, attention that rotates nothing, an MLP or experts, one of these each. Shapes and names: MODEL.md. */
export const NEMOTRON_H: DecoderDefinition = {
  ...STACK,
  takes: isOfModel,
  load: (loader, ...rest) => {
    const names = loader.checkpoint.names().filter(isOfModel);
    return STACK.load(withUsualNames(withTensors(loader, names), NAMES), ...rest);
  },
};
