import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import { withUsualNames } from '../text-part.ts';
import { expertCount, parseGraniteHybridConfig } from './config.ts';

const STACK = decoderStack({ parseConfig: parseGraniteHybridConfig, mlp: expertMlp('silu') });

type Names = readonly (readonly [RegExp, string])[];

/** Tensor names of the MLP that every row goes through, mapped to those of other families. */
const SHARED: Names = [
  [/\.input_linear\.weight$/, '.gate_up_proj.weight'],
  [/\.output_linear\.weight$/, '.down_proj.weight'],
];
/** The same of experts, whose tensors are named alike; transformers 5 has other names for them in memory. */
const EXPERTS: Names = [
  [/\.block_sparse_moe\.router\.(layer\.)?weight$/, '.mlp.gate.weight'],
  [/\.block_sparse_moe\.(experts\.)?/, '.mlp.experts.'],
  [/\.experts\.input_linear\.weight$/, '.experts.gate_up_proj'],
  [/\.experts\.output_linear\.weight$/, '.experts.down_proj'],
];

/**
 * Granite 4: Granite with one MLP or experts beside it, and Mamba 2 in the place of attention in most layers of the hybrid models. Shapes
 * and names: MODEL.md.
 */
export const GRANITE_HYBRID: DecoderDefinition = {
  ...STACK,
  load: (loader, json, ...rest) => {
    const names = [...EXPERTS, [/\.shared_mlp\./, expertCount(json) > 0 ? '.mlp.shared_expert.' : '.mlp.'] as const, ...SHARED];
    return STACK.load(withUsualNames(loader, names), json, ...rest);
  },
};
