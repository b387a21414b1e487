/** The fields of a transcription form. Everything arrives as text, so here, and only here, text becomes numbers and booleans. */
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

/** Other ids that a transcription model answers to, as with speech. */
export const TRANSCRIPTION_ALIASES: readonly string[] = ['whisper-1'];

/** Formats this server answers with. */
const BUILT_FORMATS = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const;
export type TranscriptFormat = (typeof BUILT_FORMATS)[number];
const GRANULARITIES = ['segment', 'word'] as const;
export type Granularity = (typeof GRANULARITIES)[number];
/** Formats that say when something was said. */
const TIMED: readonly TranscriptFormat[] = ['srt', 'verbose_json', 'vtt'];

type Task = NonNullable<TranscriptionRequest['task']>;

/** `File` is what holds the bytes. */
export interface TranscriptionCall<File = Blocks> {
  readonly model: string | undefined;
  readonly file: File;
  /** Everything of the request but its samples. */
  readonly request: Omit<TranscriptionRequest, 'samples'>;
  readonly format: TranscriptFormat;
  /** What verbose_json has times of. */
  readonly granularities: readonly Granularity[];
  readonly stream: boolean;
  /** Whether a stream has an event for each segment, with its times. */
  readonly segments: boolean;
  /** What was asked for and changes nothing, in a sentence each. */
  readonly warnings: readonly string[];
}

export interface FormRules {
  readonly modelOptional: boolean;
  /** Which route it came to: the form does not say. */
  readonly task: Task;
}

/** The form as JSON Schema; its parts are all text: the file and these. */
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

/** Checks a form of POST /audio/transcriptions or /audio/translations; throws HttpError 400 that names the field. */
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

/** The fields that hold something. A form sends an empty value for each field that was left blank: as good as none. */
function withoutEmpty(fields: Form['fields']): Form['fields'] {
  const filled = [...fields].map(([name, values]) => [name, values.filter((value) => value !== '')] as const);
  return new Map(filled.filter(([, values]) => values.length > 0));
}

/** 400 where the model writes only what it hears. */
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

/** Fields of the API and of other servers that would change the answer, and what to know of them. */
const REFUSED: readonly (readonly [string, string?])[] = [
  ['known_speaker_names'],
  ['known_speaker_references'],
  ['task', 'POST /v1/audio/transcriptions transcribes and /v1/audio/translations translates'],
];

/** Hints of OpenAI's newer clients and of faster-whisper. Without them the transcript is as good as it is without the field, so they are no error. */
const WITHOUT_EFFECT = ['keywords', 'languages', 'hotwords'] as const;

function refuseUnsupported(fields: Form['fields']): void {
  for (const [name, why] of REFUSED) if (fields.has(name)) throw unsupportedParameter(name, why);
}

/** Whether the probabilities of tokens are asked for; of all formats json has a place for them. */
function parseInclude(values: readonly string[], format: TranscriptFormat): boolean {
  const all = values.flatMap((value) => value.split(',')).map((value) => value.trim());
  if (all.some((value) => value !== 'logprobs')) throw invalidValue('include', "'include' may hold 'logprobs'");
  if (all.length > 0 && format !== 'json')
    throw unsupportedValue('include', `'include' 'logprobs' goes with response_format json, not '${format}'`);
  return all.length > 0;
}

/** Repeated or in a list; they are for verbose_json and streams, and OpenAI ignores them elsewhere. */
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
