/** A refusal with every remedy there is for it. */
import type { EngineError } from '../../engine/errors.ts';
import { planMemory } from '../../engine/runner/memory-plan.ts';

const GIB = 2 ** 30;

/** What a model that does not fit its device is refused with. */
export function tooLarge(): EngineError {
  const kv = {
    layers: [
      { kvHeads: 2, headDim: 64 },
      { kvHeads: 2, headDim: 64 },
    ],
    pageSize: 16,
    dtype: 'f16',
  } as const;
  const numbers = { fraction: 0.8, others: 0, weights: 2 * GIB, activations: 0, maxRunning: 8, context: 4096, maxBindingBytes: GIB };
  try {
    planMemory({ model: 'large', memory: { bytes: GIB, from: 'as set' }, kv, ...numbers });
  } catch (error) {
    return error as EngineError;
  }
  throw new Error('it fits');
}
