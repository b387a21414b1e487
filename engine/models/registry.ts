/** config.json's `model_type` and the definition that reads it. Nothing below imports this. */
import { EngineError } from '../errors.ts';
import type { DecoderDefinition } from './decoder.ts';
import { LLAMA } from './llama/llama.ts';

const DECODERS: ReadonlyMap<string, DecoderDefinition> = new Map([
  ['llama', LLAMA],
  ['mistral', LLAMA],
  ['qwen2', LLAMA],
  ['qwen3', LLAMA],
]);

/** The definition for a config.json; throws EngineError('unsupported') that lists what there is. */
export function decoderFor(json: Readonly<Record<string, unknown>>): DecoderDefinition {
  const type = json['model_type'];
  const definition = DECODERS.get(String(type));
  if (!definition) {
    throw new EngineError('unsupported', `model_type ${JSON.stringify(type)} is not a chat model this build knows: ${[...DECODERS.keys()].join(', ')}`); // prettier-ignore
  }
  return definition;
}
