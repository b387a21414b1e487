import type { Json } from '../../util/json.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import { withTensors, withUsualNames } from '../text-part.ts';
import { isOfHead, parseGlm4MoeConfig } from './config.ts';

const STACK = decoderStack({ parseConfig: parseGlm4MoeConfig, mlp: expertMlp('silu') });

/** GLM's tensor names, mapped to those of other families. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/\.mlp\.shared_experts\./, '.mlp.shared_expert.'],
  [/\.mlp\.gate\.e_score_correction_bias$/, '.mlp.expert_bias'],
];

/** Whether a tensor belongs to the model, and not to the head that guesses. */
function isOfModel(name: string, json: Json): boolean {
  const [, layer] = /^model\.layers\.(\d+)\./.exec(name) ?? [];
  return layer === undefined || !isOfHead(json, Number(layer));
}

/** GLM-4.5, 4.6 and 4.7: experts beside a shared one behind the first layers, and partial rotary embeddings. Shapes and names: MODEL.md. */
export const GLM4_MOE: DecoderDefinition = {
  ...STACK,
  takes: isOfModel,
  load: (loader, json, ...rest) => {
    const names = loader.checkpoint.names().filter((name) => isOfModel(name, json));
    return STACK.load(withUsualNames(withTensors(loader, names), NAMES), json, ...rest);
  },
};
