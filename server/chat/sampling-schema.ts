/** The fields that chat and text completions share: sampling, stop conditions, and delivery (streaming and usage). */
import { z } from 'zod';
import type { ChatRequest } from '../../engine/api.ts';
import { MAX_BIASES, MAX_STOP_TOKENS, SAMPLING_NAMES, samplingField, samplingFromWire } from '../../engine/sampling.ts';
import type { WireSampling } from '../../engine/sampling.ts';
import { invalidValue } from '../http/errors.ts';
import { entries } from '../body/bounded.ts';
import { given } from '../body/describe.ts';
import { int } from '../body/fields.ts';
import { defined } from '../body/validate.ts';
import type { Json } from '../http/route.ts';

/** Most choices per request, however many could run at once. */
export const MAX_CHOICES = 128;
const MAX_STOPS = 16;
/** Most characters of a stop sequence: a possible beginning of one is compared again with every token. */
const MAX_STOP = 1024;

const bool = z.boolean();
const stopString = z.string().min(1, 'must not be empty').max(MAX_STOP, `has at most ${MAX_STOP} characters`);

/** Schemas of the numbers of engine/sampling.ts, each with its range. */
const samplingNumbers = Object.fromEntries(
  SAMPLING_NAMES.map((name) => {
    const { wire, integer, aboveMin, min, max = Number.MAX_SAFE_INTEGER, meaning } = samplingField(name);
    const schema = integer ? int(min, max) : aboveMin ? z.number().gt(min).max(max) : z.number().min(min).max(max);
    return [wire, schema.meta({ description: meaning }).optional()];
  }),
) as { [K in keyof WireSampling]-?: z.ZodOptional<z.ZodNumber> };

export const samplingFields = {
  max_tokens: int(1).optional(),
  ...samplingNumbers,
  logit_bias: entries(
    z.record(z.string().regex(/^\d+$/, 'keys are token ids'), z.number().min(-100).max(100)).meta({ maxProperties: MAX_BIASES }),
    (bias) => Object.keys(bias).length <= MAX_BIASES,
    `has at most ${MAX_BIASES} entries`,
  ).optional(),
  stop: z.union([stopString, z.array(stopString).max(MAX_STOPS, `has at most ${MAX_STOPS} strings`)]).optional(),
  stop_token_ids: z.array(int(0)).max(MAX_STOP_TOKENS).optional(),
  ignore_eos: bool.optional(),
  min_tokens: int(0).optional(),
  skip_special_tokens: bool.optional(),
  n: int(1, MAX_CHOICES).optional(),
  stream: bool.optional(),
  stream_options: z
    .object({ include_usage: bool.nullish(), include_obfuscation: bool.nullish(), continuous_usage_stats: bool.nullish() })
    .optional(),
  cache_salt: z.string().min(1, 'must not be empty').max(256).optional(),
  /** OpenAI's hint about requests with a common prefix; ignored, since the prefix cache finds them by itself. */
  prompt_cache_key: z.string().max(256).optional(),
  priority: int(Number.MIN_SAFE_INTEGER).optional(),
  user: z.string().optional(),
};

type Fields = z.output<z.ZodObject<typeof samplingFields>>;

/** How an answer is sent. */
export interface Delivery {
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly continuousUsage: boolean;
}

/** Reads `stream` and `stream_options`; throws HttpError 400. */
export function toDelivery({ stream = false, stream_options: options }: Fields): Delivery {
  if (options && !stream) throw invalidValue('stream_options', "'stream_options' needs 'stream': true");
  return { stream, includeUsage: options?.include_usage === true, continuousUsage: options?.continuous_usage_stats === true };
}

/** 400 when more choices are asked for than can run at once. */
export function checkChoices(n: number, maxRunningRequests: number, param = 'n'): void {
  if (n > maxRunningRequests) throw invalidValue(param, `'${param}' asks for ${n} answers; at most ${maxRunningRequests} run at once`);
}

/** `n` as JSON Schema. */
export const describeChoices = (maxRunningRequests: number): Json => ({
  type: 'integer',
  minimum: 1,
  maximum: Math.min(MAX_CHOICES, maxRunningRequests),
});

/** JSON Schema rule for what `toDelivery` refuses: `stream_options` without `stream`. */
export const DELIVERY_RULE: Json = { if: given('stream_options'), then: given('stream', { const: true }) };

/** Converts the shared fields to the engine's request, omitting those that are absent. */
export function toGeneration(fields: Fields, maxTokens: number | undefined): Omit<ChatRequest, 'messages'> {
  if (maxTokens !== undefined && (fields.min_tokens ?? 0) > maxTokens) {
    throw invalidValue('min_tokens', `'min_tokens' is ${fields.min_tokens}; at most ${maxTokens} tokens are generated`);
  }
  return defined({
    sampling: defined({ ...samplingFromWire(fields), logitBias: fields.logit_bias }),
    maxTokens,
    stop: typeof fields.stop === 'string' ? [fields.stop] : fields.stop,
    stopTokenIds: fields.stop_token_ids,
    ignoreEos: fields.ignore_eos,
    minTokens: fields.min_tokens,
    skipSpecialTokens: fields.skip_special_tokens,
    n: fields.n,
    cacheSalt: fields.cache_salt,
    priority: fields.priority,
  });
}
