/** GGUF architectures of GPT-2 and its early successors (conversion/gpt2.py, gptneox.py, phi.py). Their q, k and v are one tensor, one after the other. */
import type { Architecture } from './family.ts';
import { FUSED, rotatedShare } from './glm.ts';
import { ropeOf } from './rope.ts';
import { SETTING_KEYS } from './setting-keys.ts';

const QKV = ['attn_qkv', FUSED.get('attn_qkv')!] as const;

/** GPT-2. Its matrices are the other way round than in checkpoints, as all others are. */
export function gpt2(): Architecture {
  return {
    modelType: 'gpt2',
    permuted: false,
    activation: 'gelu_new',
    layerNormEps: 'layer_norm_epsilon',
    parts: new Map([QKV]),
    settings: (metadata, key) => ({ n_inner: metadata.everyLayer(key(SETTING_KEYS.intermediate_size)) }),
  };
}

/**
 * Pythia and GPT-NeoX. Files do not say which GELU it is. Here it is the exact one, Pythia's; GPT-NeoX-20B has the fit by tanh, which is within 5e-4
 * of it.
 */
export function gptNeoX(): Architecture {
  return {
    modelType: 'gpt_neox',
    permuted: false,
    activation: 'gelu',
    layerNormEps: 'layer_norm_eps',
    parts: new Map([QKV]),
    reads: ['use_parallel_residual'],
    settings: (metadata, key, { headDim, has }) => ({
      attention_bias: has('blk.0.attn_qkv.bias'),
      use_parallel_residual: metadata.flag(key('use_parallel_residual')) ?? true,
      rotary_pct: rotatedShare(metadata, key, headDim),
      rotary_emb_base: ropeOf(metadata, key, undefined)['rope_theta'],
    }),
  };
}

/** Phi-1, 1.5 and 2, some of whose files have q, k and v apart. */
export function phi2(): Architecture {
  return {
    modelType: 'phi',
    permuted: false,
    activation: 'gelu_new',
    layerNormEps: 'layer_norm_eps',
    parts: new Map([QKV, ['ffn_up', 'mlp.fc1'], ['ffn_down', 'mlp.fc2']]),
    settings: (metadata, key, { headDim }) => ({ partial_rotary_factor: rotatedShare(metadata, key, headDim) }),
  };
}
