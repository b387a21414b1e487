/** Decoder definitions that a model folder brings along as code of its own. */
import { EngineError } from '../errors.ts';
import type { Remedy } from '../errors.ts';
import * as activation from '../ops/activation.ts';
import * as embedding from '../ops/embedding.ts';
import * as kv from '../ops/kv.ts';
import * as linear from '../ops/linear.ts';
import * as norm from '../ops/norm.ts';
import * as packing from '../ops/pack-linear.ts';
import * as pagedAttention from '../ops/paged-attention.ts';
import * as rope from '../ops/rope.ts';
import * as rows from '../ops/rows.ts';
import type { ModelFolder } from '../weights/model-folder.ts';
import { decoderFor } from './registry.ts';
import type { DecoderDefinition } from './decoder.ts';

/** The only remedy for untrusted code. */
const TRUST: Remedy = { does: 'read it, and allow it', settings: [{ name: 'trustRemoteCode', value: true }] };

const FILE = 'parley_model.mjs';

/**
 * What a model's code builds on, since it cannot import from here. It exports `createDecoder(toolkit)`, which returns a DecoderDefinition.
 */
const TOOLKIT = { decoderFor, EngineError, ops: { ...activation, ...embedding, ...kv, ...linear, ...packing, ...norm, ...pagedAttention, ...rope, ...rows } }; // prettier-ignore

/** The argument of a model's `createDecoder`. */
export type ModelToolkit = typeof TOOLKIT;

/**
 * The decoder definition of a model folder: its own code's if it has some, else the one for its config.json. Code runs with all rights of
 * this process, so without `trust` such a folder throws EngineError('invalid_model').
 */
export async function definitionFor(
  folder: ModelFolder,
  json: Readonly<Record<string, unknown>>,
  trust: boolean,
): Promise<DecoderDefinition> {
  const path = folder.where(FILE);
  if (!(await folder.has(FILE))) return decoderFor(json);
  if (!trust) {
    throw new EngineError('invalid_model', `${path} is code of the model's own, which would run with all rights of this program`, { remedies: [TRUST] }); // prettier-ignore
  }
  if (!folder.importModule) throw new EngineError('unsupported', `${path}: code of a model's own runs under Node only`);
  const { createDecoder } = await folder.importModule(FILE);
  if (typeof createDecoder !== 'function') throw new EngineError('invalid_model', `${path} exports no function createDecoder(toolkit)`);
  const definition = (createDecoder as (toolkit: ModelToolkit) => Partial<DecoderDefinition> | undefined)(TOOLKIT);
  if (typeof definition?.parseConfig !== 'function' || typeof definition.load !== 'function') {
    throw new EngineError('invalid_model', `${path}: createDecoder returned no { parseConfig, load }`);
  }
  return definition as DecoderDefinition;
}
