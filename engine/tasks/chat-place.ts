/** Where a request goes: the adapter that answers it, its namespace of the prefix cache, and its priority. */
import type { ChatRequest } from '../api.ts';
import { EngineError } from '../errors.ts';

/** What a request's place depends on. */
interface PlaceOptions {
  /** Ids of the model's LoRA adapters; absent = it has none. */
  readonly loras?: readonly string[] | undefined;
  /** Whether requests' priorities are heeded. */
  readonly priorities: boolean;
}

/**
 * The place of a request's sequences. Keys of one LoRA adapter are of no use to another, nor to the model without any, so each has a namespace
 * of its own. Throws EngineError for an adapter that the model does not have.
 */
export function placeOf(
  { lora, cacheSalt = '', priority = 0 }: Pick<ChatRequest, 'lora' | 'cacheSalt' | 'priority'>,
  { loras = [], priorities }: PlaceOptions,
): { readonly lora: number; readonly salt: string; readonly priority: number } {
  const index = lora === undefined ? 0 : 1 + loras.indexOf(lora);
  if (lora !== undefined && index === 0)
    throw new EngineError('invalid_request', `there is no LoRA adapter '${lora}'; there are: ${loras.join(', ') || 'none'}`, {
      param: 'lora',
    });
  // A salt that a request chooses has a number before it, so that it cannot be an adapter's.
  const salt = loras.length === 0 || (index === 0 && cacheSalt === '') ? cacheSalt : `${index} ${cacheSalt}`;
  return { lora: index, salt, priority: priorities ? priority : 0 };
}
