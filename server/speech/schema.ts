/** Validates the body of POST /v1/audio/speech, in its current and its earlier form. */
import { z } from 'zod';
import type { SpeechRequest } from '../../engine/api.ts';
import { withFewMarks } from '../../engine/util/marks.ts';
import { MAX_BLENDED, OPENAI_VOICES, parseBlend, withoutAliases } from '../../engine/util/voices.ts';
import { HttpError, invalidValue, missingParameter, unsupportedParameter } from '../http/errors.ts';
import { absent, describeBody, describeModel } from '../body/describe.ts';
import type { ModelNames } from '../body/describe.ts';
import { int, seedSchema } from '../body/fields.ts';
import { defined, validate } from '../body/validate.ts';
import type { Json } from '../http/route.ts';

/** Ids of OpenAI's speech models, which programs ask for; the served model also answers to them. */
export const SPEECH_ALIASES: readonly string[] = ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts'];

/** Audio formats of the API. */
export const FORMATS = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'] as const;
export type SpeechFormat = (typeof FORMATS)[number];

/** Sample rates of answers, in Hz: those that every encoder accepts. */
export const SAMPLE_RATES: readonly number[] = [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];

/** Settings of the operator that decide which bodies are accepted. */
export interface SpeechSettings {
  /** Most characters (code points) of text per request. */
  readonly maxInput: number;
  readonly defaultFormat: SpeechFormat;
  readonly modelOptional: boolean;
  /** Whether the earlier form of the body, `{text, voice_ref}`, is accepted. */
  readonly legacy: boolean;
}

/** Fills in the default settings. */
export const speechSettings = ({ maxInput = 4096, defaultFormat = 'mp3', modelOptional = false, legacy = true }: Partial<SpeechSettings>) =>
  ({ maxInput, defaultFormat, modelOptional, legacy }) satisfies SpeechSettings;

/** What a body is checked against: the settings, and the voices of the loaded model. */
export interface SpeechLimits extends SpeechSettings {
  readonly voices: readonly string[];
  /** Other names of voices, each with the voice or blend that it stands for. */
  readonly aliases: ReadonlyMap<string, string>;
}

/** `whole`: one body with its length; `chunked`: bytes as they are generated; `sse`: base64 in events. */
export type SpeechDelivery = 'whole' | 'chunked' | 'sse';

/** A validated speech request. */
export interface SpeechCall {
  readonly model: string | undefined;
  readonly request: SpeechRequest;
  readonly format: SpeechFormat;
  /** Sample rate of the answer in Hz; default: the model's. */
  readonly sampleRate?: number;
  readonly delivery: SpeechDelivery;
  /** Whether the body was in the earlier form. */
  readonly legacy: boolean;
}

/** The language of the text; `lang_code` is what Kokoro-FastAPI calls it. */
const languageSchema = z.string().min(1).max(64);

/** Schema of the current form of the body. */
const currentSpeechSchema = z.object({
  model: z.string().optional(),
  input: z.string(),
  voice: z.union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)]),
  response_format: z.enum(FORMATS).optional(),
  seed: seedSchema.optional(),
  speed: z.number().min(0.25).max(4).optional(),
  instructions: z.string().max(4096).optional(),
  stream_format: z.enum(['audio', 'sse']).optional(),
  stream: z.boolean().optional(),
  sample_rate: int(8000, 48_000).optional(),
  language: languageSchema.optional(),
  lang_code: languageSchema.optional(),
});

/** Schema of the earlier form of the body. */
const earlierSpeechSchema = z.object({ text: z.string(), voice_ref: z.string(), seed: seedSchema.optional() });

/** The body of POST /audio/speech as JSON Schema. */
export function describeSpeechBody({ maxInput, legacy, ...names }: DescribedLimits & ModelNames): Json {
  const { required, properties, example } = describeModel(names);
  const spoken = { type: 'string', pattern: '\\S', maxLength: maxInput };
  const current = describeBody(currentSpeechSchema, {
    required,
    example: { ...example, input: 'Hello there.', voice: 'charter' },
    properties: {
      ...properties,
      input: spoken,
      sample_rate: { enum: SAMPLE_RATES },
    },
    rules: [absent('text', 'voice_ref')],
  });
  const reference = { type: 'string', pattern: '\\.wav$' };
  const earlier = describeBody(earlierSpeechSchema, {
    example: { text: 'Hello there.', voice_ref: 'charter.wav' },
    properties: { text: spoken, voice_ref: reference },
    rules: [absent('input', 'voice')],
  });
  return legacy ? { oneOf: [current, earlier] } : current;
}

type DescribedLimits = Pick<SpeechSettings, 'maxInput' | 'legacy'>;

/** Validates a body of POST /v1/audio/speech; throws HttpError 400 that names the field. */
export function parseSpeechBody(body: Readonly<Record<string, unknown>>, limits: SpeechLimits): SpeechCall {
  const has = (key: string): boolean => body[key] !== undefined && body[key] !== null;
  const isEarlier = has('text') || has('voice_ref');
  const isCurrent = has('input') || has('voice');
  if (isEarlier && isCurrent)
    throw new HttpError(400, 'invalid_value', 'the body mixes the two speech request forms: {input, voice} and {text, voice_ref}');
  if (!isEarlier) return parseCurrent(body, limits);
  if (!limits.legacy) throw unsupportedParameter(has('text') ? 'text' : 'voice_ref');
  return parseEarlier(body, limits);
}

function parseCurrent(body: Readonly<Record<string, unknown>>, limits: SpeechLimits): SpeechCall {
  // Checked first, so that a client that sent nothing is told about `model`.
  if (!limits.modelOptional && (body['model'] === undefined || body['model'] === null)) throw missingParameter('model');
  const fields = validate(currentSpeechSchema, body);
  const format = fields.response_format ?? limits.defaultFormat;
  const sampleRate = fields.sample_rate;
  if (sampleRate !== undefined && !SAMPLE_RATES.includes(sampleRate)) {
    throw invalidValue('sample_rate', `'sample_rate' must be one of ${SAMPLE_RATES.join(', ')}, got ${sampleRate}`);
  }
  const delivery =
    fields.stream_format === 'sse' ? 'sse' : fields.stream_format === 'audio' || fields.stream === true ? 'chunked' : 'whole';
  const voice = voiceOf(fields.voice, 'voice', limits);
  const text = checkText(fields.input, 'input', limits);
  const request = defined({ text, voice, seed: fields.seed, speed: fields.speed, language: fields.language ?? fields.lang_code });
  return { model: fields.model, request, format, ...(sampleRate !== undefined && { sampleRate }), delivery, legacy: false };
}

function parseEarlier(body: Readonly<Record<string, unknown>>, limits: SpeechLimits): SpeechCall {
  const fields = validate(earlierSpeechSchema, body);
  const text = checkText(fields.text, 'text', limits);
  // A name with a suffix, never a path: it is looked up in the list of voices.
  if (!fields.voice_ref.endsWith('.wav')) throw invalidValue('voice_ref', "'voice_ref' must be a voice name followed by .wav");
  const voice = voiceOf(fields.voice_ref.slice(0, -'.wav'.length), 'voice_ref', limits);
  return { model: undefined, request: defined({ text, voice, seed: fields.seed }), format: 'wav', delivery: 'whole', legacy: true };
}

/** Resolves aliases in a voice or blend of voices; throws HttpError 400 for an unknown voice. */
function voiceOf(asked: string, param: string, { voices, aliases }: SpeechLimits): string {
  // A blend may have white space around its parts; the name of a voice is exact.
  const isExact = asked.trim() === asked;
  const known = param === 'voice' || !OPENAI_VOICES.has(asked);
  const voice = known ? (aliases.get(asked) ?? withoutAliases(asked, aliases)) : asked;
  const parts = [...(parseBlend(voice)?.keys() ?? [])];
  if (isExact && parts.length > 0 && parts.every((part) => voices.includes(part))) return voice;
  const blended = voice.split('+').length;
  if (blended > MAX_BLENDED) throw invalidValue(param, `'${param}' blends ${blended} voices; at most ${MAX_BLENDED} can be blended`);
  throw invalidValue(
    param,
    `'${param}' names the unknown voice '${asked.slice(0, 60)}'; voices: ${[...voices, ...aliases.keys()].join(', ')}`,
  );
}

function checkText(text: string, param: string, { maxInput }: SpeechLimits): string {
  const normal = withFewMarks(text).normalize('NFC');
  if (normal.trim() === '') throw invalidValue(param, `'${param}' must not be blank`);
  // The limit is in code points, so that no character counts twice; `length` (UTF-16) is an upper bound of them.
  const length = normal.length > maxInput ? [...normal].length : normal.length;
  if (length > maxInput) throw invalidValue(param, `'${param}' has ${length} characters; at most ${maxInput} are spoken`);
  return normal;
}
