import { createRng } from '../../engine/util/rng.ts';

export { harmonicSource } from '../../engine/runner/plain/source.ts';
export type { SourceShape } from '../../engine/runner/plain/source.ts';

/** The first `count` normal draws of the generator that the kernel addresses by number. */
export function normals(seed: number, count: number): Float64Array {
  const rng = createRng(seed);
  return Float64Array.from({ length: count }, () => rng.normal());
}
