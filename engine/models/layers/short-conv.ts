/** The short convolution of LFM2: a causal convolution between two gates computed from the row itself; its state is the last rows. */
import type { Device } from '../../gpu/device.ts';
import type { Recorder } from '../../gpu/recorder.ts';
import type { Tensor } from '../../gpu/tensor.ts';
import { linear } from '../../ops/linear.ts';
import { causalConv } from '../../ops/recurrent.ts';
import { gatherRows } from '../../ops/sample.ts';
import type { LinearWeight } from '../../ops/weight.ts';
import { transposed } from '../../util/math.ts';
import type { WeightLoader } from '../weight-loader.ts';
import type { Recurrent } from './recurrent.ts';

export interface ShortConv {
  /** [3 C, C]: rows of the input gate, of the output gate, and of the convolution's input. */
  readonly input: LinearWeight;
  /** [taps, C]. */
  readonly conv: Tensor;
  readonly output: LinearWeight;
}

export interface ShortConvWorkspace {
  readonly projected: Tensor; // [T, 3 C]
  readonly mixed: Tensor; // [T, C]
  readonly gathered: Tensor; // [B, C] of the rows that give logits
}

/** Short convolutions of `hidden` channels; a layer's weights stand below `conv`. */
export function shortConv({ hidden, taps }: { readonly hidden: number; readonly taps: number }): Recurrent<ShortConv, ShortConvWorkspace> {
  return {
    state: { tail: (taps - 1) * hidden, matrix: 0 },
    widest: 3 * hidden,
    load: (loader, at) => loadShortConv(loader, `${at}.conv`, hidden, taps),
    workspace: (device: Device, rows, logitRows) => ({
      projected: device.tensor('short conv projected', 'f32', [rows, 3 * hidden]),
      mixed: device.tensor('short conv mixed', 'f32', [rows, hidden]),
      gathered: device.tensor('gathered short conv', 'f32', [logitRows, hidden]),
    }),
    record(rec: Recorder, { input, conv, output }, ws, { x, state, indices, kept, residual, out }, { rows, spans }) {
      linear(rec, { x, weight: input, out: ws.projected, rows });
      causalConv(rec, { x: ws.projected, gated: true, weight: conv, spans, state, out: ws.mixed });
      if (indices) gatherRows(rec, { x: ws.mixed, indices, out: ws.gathered, rows: kept });
      linear(rec, { x: indices ? ws.gathered : ws.mixed, weight: output, residual, out, rows: kept });
    },
  };
}

async function loadShortConv(loader: WeightLoader, at: string, hidden: number, taps: number): Promise<ShortConv> {
  const conv = await loader.data(`${at}.conv.weight`, [hidden, 1, taps]);
  return {
    input: await loader.linear(`${at}.in_proj.weight`, 3 * hidden, hidden),
    conv: loader.device.upload(`${at}.conv`, 'f32', [taps, hidden], transposed(conv, hidden, taps)),
    output: await loader.linear(`${at}.out_proj.weight`, hidden, hidden),
  };
}
