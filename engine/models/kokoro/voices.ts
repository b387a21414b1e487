import { EngineError } from '../../errors.ts';
import { shapeOf } from '../../weights/checkpoint.ts';
import type { Checkpoint } from '../../weights/checkpoint.ts';

/** A voice: one style vector for each number of phonemes (public voices have 510), or one for every length. */
export interface Voice {
  readonly rows: number;
  /** [rows, 2 styleDim]: the decoder's half, then the prosody's half. */
  readonly values: Float32Array;
}

/** Reads voices.safetensors; tensors are [rows, 2 styleDim] or [rows, 1, 2 styleDim]. */
export async function loadVoices(checkpoint: Checkpoint, styleDim: number): Promise<ReadonlyMap<string, Voice>> {
  const voices = new Map<string, Voice>();
  for (const name of [...checkpoint.names()].sort()) {
    const shape = shapeOf(checkpoint, name);
    if (shape.at(-1) !== 2 * styleDim) {
      throw new EngineError(
        'invalid_model',
        `voices.safetensors: ${name} has shape [${shape.join(', ')}], expected ${2 * styleDim} columns`,
      );
    }
    const values = await checkpoint.read(name);
    voices.set(name, { rows: values.length / (2 * styleDim), values });
  }
  if (voices.size === 0) throw new EngineError('invalid_model', 'voices.safetensors holds no voice');
  return voices;
}

/** The two halves, [styleDim] each, of a voice's style vector for a number of phonemes. */
export function voiceStyle(
  { rows, values }: Voice,
  phonemes: number,
  styleDim: number,
): { readonly decoder: Float32Array; readonly prosody: Float32Array } {
  const first = Math.min(Math.max(phonemes, 1), rows) - 1;
  const at = first * 2 * styleDim;
  return { decoder: values.subarray(at, at + styleDim), prosody: values.subarray(at + styleDim, at + 2 * styleDim) };
}

/**
 * The weighted sum of voices, [voice, share] each; throws EngineError('invalid_model') when they have different numbers of style vectors.
 */
export function blendVoices(parts: readonly (readonly [Voice, number])[]): Voice {
  const [first, ...others] = parts.map(([voice]) => voice);
  if (!first || others.some(({ values }) => values.length !== first.values.length)) {
    throw new EngineError('invalid_model', 'voices with different numbers of styles cannot be blended');
  }
  const values = new Float32Array(first.values.length);
  for (const [voice, share] of parts) for (let i = 0; i < values.length; i++) values[i]! += share * voice.values[i]!;
  return { rows: first.rows, values };
}
