/** Falcon-H1 as GGUF files (conversion/falcon_h1.py), whose weights have the multipliers in them: the logits are transformers'. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { StoredTensor } from '../support/gguf-file.ts';
import { PARTS, TOP, converted, expectFixtureLogits, f32, floats, mambaShaped, metadataOf, u32 } from '../support/gguf-fixtures.ts';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const FEED = Object.fromEntries(['gate', 'up', 'down'].map((part) => [`feed_forward.${part}_proj`, `ffn_${part}`]));
const MAMBA = {
  'mamba.in_proj': 'ssm_in', 'mamba.conv1d': 'ssm_conv1d', 'mamba.conv1d.bias': 'ssm_conv1d.bias', 'mamba.norm': 'ssm_norm', 'mamba.out_proj': 'ssm_out',
  'mamba.A_log': 'ssm_a', 'mamba.D': 'ssm_d', 'mamba.dt_bias': 'ssm_dt.bias',
}; // prettier-ignore

/** What the converter multiplies a fixture's tensors with; of ssm_in, rows up to each end. */
type Factors = Readonly<Record<string, number | readonly (readonly [end: number, factor: number])[]>>;

async function tensorsOf(fixture: string, groups: number, hidden: number, factors: Factors): Promise<Record<string, StoredTensor>> {
  const tensors = await converted(fixture, {
    top: { ...TOP, 'model.final_layernorm': 'output_norm' },
    parts: { ...PARTS, ...FEED, ...MAMBA, input_layernorm: 'attn_norm', pre_ff_layernorm: 'ffn_norm' },
    value(own, values) {
      if (own === 'ssm_a') return values.map((value) => -Math.exp(value));
      const factor = factors[own] ?? 1;
      if (typeof factor === 'number') return values.map((value) => value * factor);
      return values.map((value, i) => value * factor.find(([end]) => i / hidden < end)![1]);
    },
  });
  // This norm's name ends there.
  const named = Object.entries(tensors).map(([name, tensor]) => [name.replace(/ffn_norm\.weight$/, 'ffn_norm'), tensor] as const);
  return mambaShaped(Object.fromEntries(named), groups);
}

test('falcon-h1: attention and Mamba side by side, a gate without a norm: the logits are transformers', async () => {
  const metadata = metadataOf('falcon-h1', {
    block_count: u32(2), context_length: u32(512), embedding_length: u32(32), feed_forward_length: u32(64), 'attention.head_count': u32(4),
    'attention.head_count_kv': u32(4), 'attention.key_length': u32(8), 'attention.value_length': u32(8), 'attention.layer_norm_rms_epsilon': f32(1e-5),
    'rope.freq_base': f32(1e5), 'ssm.conv_kernel': u32(4), 'ssm.inner_size': u32(64), 'ssm.state_size': u32(24), 'ssm.time_step_rank': u32(8), 'ssm.group_count': u32(2),
  }); // prettier-ignore
  const ofMamba = ([[64, 0.35], [128, 0.25], [176, 0.3], [224, 0.5], [232, 0.7]] as const).map(([end, factor]) => [end, 1.25 * factor] as const); // prettier-ignore
  const tensors = await tensorsOf('falcon_h1', 2, 32, {
    token_embd: 3, output: 0.5, attn_q: 1.2, attn_k: 1.2 * 0.4, attn_v: 1.2, attn_output: 0.9, ffn_gate: 0.8, ffn_down: 0.6, ssm_in: ofMamba, ssm_out: 0.5,
  }); // prettier-ignore
  await expectFixtureLogits(device, 'falcon_h1', ggufFile({ metadata, tensors }));
  const biased = { ...tensors, 'blk.1.ffn_up.bias': floats(new Float32Array(64).fill(1), [64]) };
  await expect(expectFixtureLogits(device, 'falcon_h1', ggufFile({ metadata, tensors: biased }))).rejects.toThrow(/up_proj\.bias/);
});

test('falcon-h1 with a norm behind the gate, and the head that is the table: the logits are transformers', async () => {
  const metadata = metadataOf('falcon-h1', {
    block_count: u32(2), context_length: u32(512), embedding_length: u32(40), feed_forward_length: u32(52), 'attention.head_count': u32(5),
    'attention.head_count_kv': u32(1), 'attention.key_length': u32(8), 'attention.value_length': u32(8), 'attention.layer_norm_rms_epsilon': f32(1e-5),
    'rope.freq_base': f32(1e4), 'ssm.conv_kernel': u32(3), 'ssm.inner_size': u32(80), 'ssm.state_size': u32(16), 'ssm.time_step_rank': u32(5), 'ssm.group_count': u32(1),
  }); // prettier-ignore
  const tensors = await tensorsOf('falcon_h1-norm', 1, 40, { ssm_out: 0.7 });
  await expectFixtureLogits(device, 'falcon_h1-norm', ggufFile({ metadata, tensors }));
});
