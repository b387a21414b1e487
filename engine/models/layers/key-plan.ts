/** Measures a layer's keys for int8 pages: their centre, and which of their channels are large. */
import type { Device } from '../../gpu/device.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { behindNorm } from '../../ops/fused-linear.ts';
import { planKeys } from '../../ops/key-plan.ts';
import type { KVLayer } from '../../ops/kv.ts';
import { ropeFrequencies } from '../../ops/rope.ts';
import type { RopeConfig } from '../../ops/rope.ts';
import { createRng } from '../../util/rng.ts';
import { projectQKV } from './attention.ts';
import type { Attention, AttentionConfig, AttentionShare } from './attention.ts';

/** Rows of noise that are projected, enough to estimate a channel's standard deviation to one eighth. */
const ROWS = 32;

/** The parts of a layer that its keys depend on. */
interface PagedLayer {
  readonly inputNorm: Tensor | undefined;
  readonly inputShift?: Tensor | undefined;
  readonly attention: Attention | undefined;
  readonly rope: RopeConfig;
  readonly share: { readonly attention: AttentionShare };
}

/**
 * Fills KVLayer.plan of every layer with int8 pages, from keys that are computed for random inputs. What makes a channel large in a trained
 * model (a bias, or rows of the projection or of a norm) does so for any input. The plan thus depends on the weights alone, and pages on
 * their tokens and positions.
 */
export async function planLayerKeys(
  device: Device,
  layers: readonly PagedLayer[],
  { hidden, eps }: Pick<AttentionConfig, 'hidden' | 'eps'>,
  pages: readonly KVLayer[],
): Promise<void> {
  const rng = createRng(1);
  const noise = device.upload('noise', 'f32', [ROWS, hidden], Float32Array.from({ length: ROWS * hidden }, () => rng.normal())); // prettier-ignore
  const normed = device.tensor('normed noise', 'f32', [ROWS, hidden]);
  for (const [i, { inputNorm: norm, inputShift: shift, attention, rope, share }] of layers.entries()) {
    const { plan } = pages[i]!;
    if (!plan) continue;
    const { heads, kvHeads, headDim, widest } = share.attention;
    const qkv = device.tensor('qkv of noise', 'f32', [ROWS, widest]);
    const rec = device.record('keys of noise');
    projectQKV(rec, attention!, share.attention, { input: behindNorm(rec, { x: noise, norm, eps, normed }, shift, ROWS), qkv, rows: ROWS });
    rec.submit();
    const projected = (await device.read(qkv)) as Float32Array;
    device.write(plan, planKeys({ qkv: projected, rows: ROWS, heads, kvHeads, headDim, frequencies: ropeFrequencies(rope) }));
    device.destroy(qkv);
  }
  device.destroy(noise, normed);
}
