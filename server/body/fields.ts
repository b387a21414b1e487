/** Schemas of fields that bodies of several listeners have. */
import { z } from 'zod';
import { SAMPLING } from '../../engine/sampling.ts';

/** Schema of an integer in this range. Here and elsewhere, meta() tells /openapi.json what a refinement checks. */
export const int = (min: number, max = Number.MAX_SAFE_INTEGER) =>
  z.number().refine(Number.isInteger, 'must be an integer').min(min).max(max).meta({ type: 'integer' });

/** Schema of `seed`, which the OpenAI API defines as an int64. */
export const seedSchema = int(SAMPLING.seed.min, SAMPLING.seed.max);
