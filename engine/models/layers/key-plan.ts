/** What int8 pages should know of a layer's keys: where they lie, and which of their channels are large. */
import type { Device } from '../../gpu/device.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { planKeys } from '../../ops/key-plan.ts';
import type { KVLayer } from '../../ops/kv.ts';
import { rmsNorm } from '../../ops/norm.ts';
import { ropeFrequencies } from '../../ops/rope.ts';
import type { RopeConfig } from '../../ops/rope.ts';
import { createRng } from '../../util/rng.ts';
import { projectQKV } from './attention.ts';
import type { Attention, AttentionConfig, AttentionShare } from './attention.ts';

/** Rows of noise a layer is asked with. The spread of a channel of normal values is then known to an eighth. */
const ROWS = 32;

/**
 * Fills `plan` of every layer of int8 pages. A layer's keys are asked for with noise: what makes a channel large in a trained model, a bias or rows of the
 * projection or of a norm, makes it large for any input. So the plan depends on the weights alone, and pages on their tokens and positions.
 */
export async function planLayerKeys(
  device: Device,
  layers: readonly { readonly inputNorm: Tensor | undefined; readonly attention: Attention; readonly rope: RopeConfig }[],
  { hidden, headDim, eps }: Pick<AttentionConfig, 'hidden' | 'headDim' | 'eps'>,
  { heads, kvHeads, widest }: AttentionShare,
  pages: readonly KVLayer[],
): Promise<void> {
  const rng = createRng(1);
  const noise = device.upload('noise', 'f32', [ROWS, hidden], Float32Array.from({ length: ROWS * hidden }, () => rng.normal())); // prettier-ignore
  const normed = device.tensor('normed noise', 'f32', [ROWS, hidden]);
  const qkv = device.tensor('qkv of noise', 'f32', [ROWS, widest]);
  for (const [i, { inputNorm, attention, rope }] of layers.entries()) {
    const { plan } = pages[i]!;
    if (!plan) continue;
    const rec = device.record('keys of noise');
    if (inputNorm) rmsNorm(rec, { x: noise, weight: inputNorm, out: normed, eps });
    projectQKV(rec, attention, { heads, kvHeads }, { x: inputNorm ? normed : noise, qkv, eps, rows: ROWS });
    rec.submit();
    const projected = (await device.read(qkv)) as Float32Array;
    device.write(plan, planKeys({ qkv: projected, rows: ROWS, heads, kvHeads, headDim, frequencies: ropeFrequencies(rope) }));
  }
  device.destroy(noise, normed, qkv);
}
