/** Validates the form of a transcription request. Fields of a form are text; here they are parsed into numbers, booleans and lists. */
import type { ModelInfo, TranscriptionRequest } from '../../engine/api.ts';
import { describeChunking, parseChunking } from './chunking.ts';
import { invalidValue, missingParameter, notAnUpload, unsupportedParameter, unsupportedValue } from '../http/errors.ts';
import type { Blocks } from '../body/blocks.ts';
import type { Form } from '../body/multipart.ts';
import { describeModel } from '../body/describe.ts';
import type { ModelNames } from '../body/describe.ts';
import { defined } from '../body/validate.ts';
import type { Json } from '../http/route.ts';
import { parseBoolean } from './form-values.ts';
import { languageCode } from './languages.ts';

/** Id of OpenAI's transcription model, which programs ask for; the served model also answers to it. */
export const TRANSCRIPTION_ALIASES: readonly string[] = ['whisper-1'];

/** Response formats that are supported. */
const BUILT_FORMATS = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const;
export type TranscriptFormat = (typeof BUILT_FORMATS)[number];
const GRANULARITIES = ['segment', 'word'] as const;
export type Granularity = (typeof GRANULARITIES)[number];
/** Response formats that contain times. */
const TIMED: readonly TranscriptFormat[] = ['srt', 'verbose_json', 'vtt'];

type Task = NonNullable<TranscriptionRequest['task']>;

/** A validated transcription request; `File` is the type that holds the upload's bytes. */
export interface TranscriptionCall<File = Blocks> {
  readonly model: string | undefined;
  readonly file: File;
  /** The engine's request, without the samples. */
  readonly request: Omit<TranscriptionRequest, 'samples'>;
  readonly format: TranscriptFormat;
  /** Whether verbose_json has times of segments, words or both. */
  readonly granularities: readonly Granularity[];
  readonly stream: boolean;
  /** Whether a stream also has an event with times for each segment. */
  readonly segments: boolean;
  /** One sentence for each field that has no effect. */
  readonly warnings: readonly string[];
}

export interface FormRules {
  readonly modelOptional: boolean;
  /** Task of the route; the form does not say it. */
  readonly task: Task;
}

/** The form as JSON Schema. */
export function describeTranscriptionForm(names: ModelNames): Json {
  const { required, properties } = describeModel(names);
  return {
    type: 'object',
    required: ['file', ...required],
    properties: {
      file: { type: 'string', contentMediaType: 'application/octet-stream' },
      ...properties,
      language: { type: 'string', description: 'ISO 639-1 code or English name of the language that is spoken' },
      prompt: {
        type: 'string',
        description: 'Text before the audio; ignored, with x-parley-warning, by models that were not trained with any',
      },
      response_format: { enum: BUILT_FORMATS },
      temperature: { type: 'number', minimum: 0, maximum: 1 },
      'timestamp_granularities[]': { type: 'array', items: { enum: GRANULARITIES }, description: 'For verbose_json; of a stream, segment' },
      'include[]': { type: 'array', items: { const: 'logprobs' }, description: 'For json' },
      stream: { type: 'boolean', description: 'Not with srt, verbose_json and vtt' },
      ...describeChunking(),
    },
  };
}

/** Validates a form of POST /v1/audio/transcriptions or /v1/audio/translations; throws HttpError 400 that names the field. */
export function parseTranscriptionForm<File = Blocks>(
  { fields, file }: Pick<Form, 'fields'> & { readonly file: File | undefined },
  { modelOptional, task }: FormRules,
): TranscriptionCall<File> {
  const one = (name: string): string | undefined => fields.get(name)?.at(-1);
  if (!file) {
    throw one('file') === undefined ? missingParameter('file') : notAnUpload();
  }
  const model = one('model');
  if (model === undefined && !modelOptional) throw missingParameter('model');
  const format = parseFormat(one('response_format') || 'json');
  const filled = withoutEmpty(fields);
  refuseUnsupported(filled);
  const logprobs = parseInclude(filled.get('include') ?? [], format);
  const granularities = parseGranularities(filled.get('timestamp_granularities') ?? []);
  const stream = parseBoolean('stream', one('stream')) ?? false;
  const segments = stream && filled.has('timestamp_granularities') && granularities.includes('segment');
  const timed = TIMED.includes(format) || segments;
  if (stream && TIMED.includes(format))
    throw unsupportedValue('stream', `'stream' sends text as it is heard; '${format}' comes in one piece`);
  const request = defined({
    task: task === 'translate' ? task : undefined,
    language: parseLanguage(one('language')),
    prompt: one('prompt') || undefined,
    temperature: parseTemperature(one('temperature')),
    logprobs: logprobs || undefined,
    vad: parseChunking(filled),
    timestamps: format === 'verbose_json' && granularities.includes('word') ? 'word' : timed ? 'segment' : undefined,
  }) as TranscriptionCall['request'];
  const warnings = WITHOUT_EFFECT.filter((name) => filled.has(name)).map(
    (name) => `'${name}' has no effect: the models here take no such hints`,
  );
  return { model, file, request, format, granularities, stream, segments, warnings };
}

/** Drops empty values: a form sends one for each field that was left blank. */
function withoutEmpty(fields: Form['fields']): Form['fields'] {
  const filled = [...fields].map(([name, values]) => [name, values.filter((value) => value !== '')] as const);
  return new Map(filled.filter(([, values]) => values.length > 0));
}

/** Throws HttpError 400 if the model cannot translate. */
export function checkTranslates(modelId: string, model: ModelInfo | undefined): void {
  if (model?.translates) return;
  const message = `the model '${modelId}' cannot translate: that needs a multilingual Whisper; /v1/audio/transcriptions transcribes`;
  throw unsupportedValue('model', message);
}

function parseFormat(format: string): TranscriptFormat {
  if (format === 'diarized_json') {
    throw unsupportedValue(
      'response_format',
      `'response_format' 'diarized_json' names speakers, whom no model here tells apart; built: ${BUILT_FORMATS.join(', ')}`,
    );
  }
  const built = BUILT_FORMATS.find((name) => name === format);
  if (!built) throw invalidValue('response_format', `'response_format' must be one of ${BUILT_FORMATS.join(', ')}`);
  return built;
}

/** Unsupported fields of the API and of other servers, which are refused because they would change the answer; some with a hint. */
const REFUSED: readonly (readonly [string, string?])[] = [
  ['known_speaker_names'],
  ['known_speaker_references'],
  ['task', 'POST /v1/audio/transcriptions transcribes and /v1/audio/translations translates'],
];

/** Hints of OpenAI's newer clients and of faster-whisper. They are ignored with a warning, since the transcript is valid without them. */
const WITHOUT_EFFECT = ['keywords', 'languages', 'hotwords'] as const;

function refuseUnsupported(fields: Form['fields']): void {
  for (const [name, why] of REFUSED) if (fields.has(name)) throw unsupportedParameter(name, why);
}

/** Parses `include`: whether log-probabilities of tokens are asked for. Only the format json has a place for them. */
function parseInclude(values: readonly string[], format: TranscriptFormat): boolean {
  const all = values.flatMap((value) => value.split(',')).map((value) => value.trim());
  if (all.some((value) => value !== 'logprobs')) throw invalidValue('include', "'include' may hold 'logprobs'");
  if (all.length > 0 && format !== 'json')
    throw unsupportedValue('include', `'include' 'logprobs' goes with response_format json, not '${format}'`);
  return all.length > 0;
}

/** Parses `timestamp_granularities`, which may be repeated or a comma-separated list; default: segment. Formats other than verbose_json and streams ignore it, as OpenAI does. */
function parseGranularities(values: readonly string[]): readonly Granularity[] {
  const all = values.flatMap((value) => value.split(',')).map((value) => value.trim());
  const known = GRANULARITIES.filter((one) => all.includes(one));
  if (all.some((value) => !known.some((one) => one === value))) {
    throw invalidValue('timestamp_granularities', "'timestamp_granularities' may hold 'segment' and 'word'");
  }
  return known.length > 0 ? known : ['segment'];
}

function parseLanguage(language: string | undefined): string | undefined {
  if (language === undefined || language === '') return undefined;
  const found = languageCode(language);
  if (found === undefined)
    throw invalidValue('language', `'language' must be an ISO 639-1 code such as 'en', got '${language.slice(0, 40)}'`);
  return found;
}

function parseTemperature(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  const value = /^(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : NaN;
  if (!(value >= 0 && value <= 1)) throw invalidValue('temperature', "'temperature' must be a number from 0 to 1");
  return value;
}
