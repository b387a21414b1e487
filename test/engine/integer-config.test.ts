/** Which quantisations to integers config.json may say are read, and that the others are refused by name. */
import { expect, test } from 'vitest';
import { describeQuantization, formatOfWeights } from '../../engine/util/foreign-format.ts';
import type { Json } from '../../engine/util/json.ts';

const gptq = (more: Json = {}): Json => ({ quantization_config: { quant_method: 'gptq', bits: 4, group_size: 128, ...more } });
const awq = (more: Json = {}): Json => ({
  quantization_config: { quant_method: 'awq', bits: 4, group_size: 128, version: 'gemm', ...more },
});
const integers = (weights: Json = {}, more: Json = {}): Json => ({
  quantization_config: {
    quant_method: 'compressed-tensors', format: 'pack-quantized', config_groups: { g: { weights: { type: 'int', num_bits: 4, strategy: 'group', group_size: 128, ...weights } } }, ...more,
  },
}); // prettier-ignore

test.each([
  [gptq(), 'GPTQ 4-bit'],
  [gptq({ bits: 8, checkpoint_format: 'gptq_v2', desc_act: true, group_size: -1 }), 'GPTQ 8-bit'],
  [awq(), 'AWQ 4-bit'],
  [awq({ version: 'GEMM' }), 'AWQ 4-bit'],
  [
    { quantization_config: { quant_method: 'auto-round', bits: 4, group_size: 128, sym: true, packing_format: 'auto_round:auto_gptq' } },
    'GPTQ 4-bit',
  ],
  [
    { quantization_config: { quant_method: 'auto-round', bits: 4, group_size: 128, sym: false, packing_format: 'auto_round:auto_awq' } },
    'AWQ 4-bit',
  ],
  [integers(), 'compressed-tensors 4-bit'],
  [integers({ num_bits: 8, strategy: 'channel' }, { format: 'int-quantized' }), 'compressed-tensors 8-bit'],
  [{ quantization: { group_size: 64, bits: 4 } }, 'MLX 4-bit'],
  [{ quantization: { group_size: 64, bits: 6 }, quantization_config: { group_size: 64, bits: 6 } }, 'MLX 6-bit'],
  [{ quantization_config: { quant_method: 'bitsandbytes', _load_in_8bit: true } }, 'bitsandbytes 8-bit'],
  [{ quantization_config: { quant_method: 'modelopt', quant_algo: 'NVFP4', group_size: 16 } }, 'NVFP4'],
  [integers({ type: 'float', group_size: 16, strategy: 'tensor_group' }, { format: 'nvfp4-pack-quantized' }), 'NVFP4'],
  [{ quantization_config: { quant_method: 'fp8' } }, undefined],
  [{}, undefined],
])('%o is read', (config, format) => {
  expect(describeQuantization(config)).toBeUndefined();
  expect(formatOfWeights(config)).toBe(format);
});

test.each([
  [
    gptq({ bits: 3 }),
    /quantised with GPTQ, and 3 bits are not read, only 4 and 8; take the model they were made from, in f32, f16 or bf16, or a GGUF file of it$/,
  ],
  [gptq({ bits: undefined }), /and null bits are not read/],
  [gptq({ checkpoint_format: 'marlin' }), /and its checkpoint_format "marlin" is not read, only "gptq" and "gptq_v2";/],
  [gptq({ is_marlin_format: true }), /and its checkpoint_format "marlin" is not read/],
  [gptq({ group_size: 'all' }), /and group_size is "all", expected a number of columns or -1;/],
  [awq({ bits: 8 }), /quantised with AWQ, and 8 bits are not read, only 4;/],
  [awq({ version: 'gemv' }), /and its version "gemv" is not read, only "gemm";/],
  [awq({ backend: 'llm-awq' }), /and its version "llm-awq" is not read/],
  [
    { quantization_config: { quant_method: 'auto-round', bits: 4, packing_format: 'auto_round:ark' } },
    /quantised with AutoRound, and its packing_format "auto_round:ark" is not read/,
  ],
  [integers({ num_bits: 3 }), /quantised with compressed-tensors, and 3 bits are not read, only 4 and 8;/],
  [integers({ strategy: 'token' }), /and the strategy "token" of integers is not known;/],
  [integers({}, { format: 'marlin-24' }), /and integers in the format "marlin-24" are not read;/],
  [integers({}, { sparsity_config: { format: 'sparse-24-bitmask' } }), /and sparse weights are not read;/],
  [integers({}, { transform_config: { config_groups: { u: {} } } }), /and weights that need transforms \(transform_config\) are not read;/],
  [{ quantization: { group_size: 64, bits: 7 } }, /quantised with MLX, and 7 bits are not read, only 2, 3, 4, 5, 6, 8;/],
  [{ quantization: { group_size: 32, bits: 4, mode: 'mxfp4' } }, /and the mode "mxfp4" is not read, only "affine";/],
  [
    { quantization_config: { quant_method: 'bitsandbytes' } },
    /quantised with bitsandbytes, and it says neither load_in_4bit nor load_in_8bit;/,
  ],
  [{ quantization_config: { quant_method: 'hqq' } }, /quantised with HQQ, which is not read;/],
])('%o is refused by name', (config, message) => {
  expect(describeQuantization(config as Json)).toMatch(message);
  expect(formatOfWeights(config as Json)).toBeUndefined();
});
