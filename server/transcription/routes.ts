/** The transcription listener: POST /v1/audio/transcriptions and /v1/audio/translations, whole or as server-sent events. */
import type { Express, Response } from 'express';
import type { TranscriptSegment, TranscriptionEvent } from '../../engine/api.ts';
import { createApp } from '../http/app.ts';
import { ListenerContext } from '../http/context.ts';
import type { AppOptions, Job } from '../http/context.ts';
import type { CodecPool } from '../audio/pool.ts';
import { decodedBytes, sampleBytes } from '../audio/decode.ts';
import { unsupportedValue } from '../http/errors.ts';
import { countAudio, relay } from '../http/relay.ts';
import type { AudioCount } from '../http/relay.ts';
import { EVENT_TYPE, JSON_TYPE } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { readForm } from '../body/multipart.ts';
import { describeTranscriptionForm, parseTranscriptionForm } from './schema.ts';
import type { TranscriptionCall } from './schema.ts';
import { logprobsOf, sendTranscript, shownSegment } from './formats.ts';
import { UPLOAD_LIMITS, UploadBudget } from '../body/upload-budget.ts';
import type { UploadLimits } from '../body/upload-budget.ts';

export interface TranscriptionAppOptions extends AppOptions {
  readonly codec: CodecPool;
  /** Bytes of one file; 25 MiB as OpenAI has it. */
  readonly maxFileBytes?: number;
  /** What differs from UPLOAD_LIMITS. */
  readonly uploadLimits?: Partial<UploadLimits>;
}

const DEFAULT_FILE_BYTES = 25 << 20;

/** The app of the transcription listener; no side effects until it is listened on. */
export function createTranscriptionApp(options: TranscriptionAppOptions): Express {
  const context = new ListenerContext('transcription', options);
  const maxFileBytes = options.maxFileBytes ?? DEFAULT_FILE_BYTES;
  // Half of the budget is one address's share, and a form is a little larger than its file.
  const maxBytes = Math.max(UPLOAD_LIMITS.maxBytes, 4 * maxFileBytes);
  const budget = new UploadBudget({ maxBytes, ...options.uploadLimits });
  const handle = (task: 'transcribe' | 'translate') =>
    context.job(async (request, response, job) => {
      const { form, upload } = await readForm(request, maxFileBytes, budget);
      try {
        const call = parseTranscriptionForm(form, { modelOptional: options.modelOptional ?? false, task });
        if (call.model !== undefined) context.checkModel(call.model);
        if (task === 'translate') checkTranslates(context);
        job.note({ bytes: call.file.length, stream: call.stream, format: call.format });
        await upload.hear(decodedBytes(call.file), job.signal);
        const { samples, warnings, discard } = await options.codec.decode(call.file);
        try {
          upload.settle(sampleBytes(samples));
          warn(response, warnings);
          const heard = context.engine.transcribe({ ...call.request, samples }, job.signal);
          const events = countAudio(context, job, heard, COUNT);
          await (call.stream ? sendStream(response, events, call, job) : sendWhole(response, events, call, job));
        } finally {
          await discard();
        }
      } finally {
        upload.close();
      }
    });
  const route = (task: 'transcribe' | 'translate', path: string, summary: string): Route => ({
    method: 'post',
    path,
    summary,
    tags: ['transcription'],
    body: () => ({ 'multipart/form-data': describeTranscriptionForm(context.names) }),
    answers: [JSON_TYPE, 'text/plain', 'text/vtt', EVENT_TYPE],
    handler: handle(task),
  });
  return createApp(context, [
    route('transcribe', '/v1/audio/transcriptions', 'Writes down speech'),
    route('translate', '/v1/audio/translations', 'Writes down speech in English, where the model can'),
  ]);
}

/** 400 where the model writes only what it hears. */
function checkTranslates(context: ListenerContext): void {
  if (context.model()?.translates) return;
  const message = `the model '${context.options.modelId}' cannot translate: that needs a multilingual Whisper; /v1/audio/transcriptions transcribes`;
  throw unsupportedValue('model', message);
}

const COUNT: AudioCount<TranscriptionEvent> = {
  isOutput: ({ type }) => type === 'segment',
  seconds: (event) => (event.type === 'finish' ? event.duration : undefined),
};

async function sendWhole(
  response: Response,
  events: AsyncIterable<TranscriptionEvent>,
  { request: { task = 'transcribe' }, ...call }: TranscriptionCall,
  job: Job,
): Promise<void> {
  const segments: TranscriptSegment[] = [];
  let start: Extract<TranscriptionEvent, { type: 'start' }> | undefined;
  let finish: Extract<TranscriptionEvent, { type: 'finish' }> | undefined;
  for await (const event of events) {
    if (event.type === 'start') start = event;
    else if (event.type === 'segment') segments.push(event.segment);
    else finish = event;
  }
  if (!start || !finish) throw new TypeError('the engine ended a transcription without its start or finish');
  warn(response, start.warnings);
  job.note({ output_tokens: finish.outputTokens });
  sendTranscript(response, call, { task, start, segments, finish });
}

/** What is served otherwise than asked goes into a header: the bodies have no place for it. */
function warn(response: Response, warnings: readonly string[] = []): void {
  for (const warning of warnings) response.append('x-parley-warning', warning);
}

/** Deltas that concatenate to the final text: space at its start and end is dropped, so trailing space waits for what follows it. */
async function sendStream(
  response: Response,
  events: AsyncIterable<TranscriptionEvent>,
  { segments: tellsSegments }: Pick<TranscriptionCall, 'segments'>,
  job: Job,
): Promise<void> {
  let text = '';
  let held = '';
  const segments: TranscriptSegment[] = [];
  await relay(response, job, async (stream) => {
    for await (const event of events) {
      if (event.type === 'start') warn(response, event.warnings);
      stream.begin();
      if (event.type === 'segment') {
        segments.push(event.segment);
        const grown = text === '' ? event.segment.text.trimStart() : held + event.segment.text;
        const delta = grown.trimEnd();
        held = grown.slice(delta.length);
        text += delta;
        if (delta !== '') await stream.send({ type: 'transcript.text.delta', delta, ...logprobsOf([event.segment]) });
        if (tellsSegments) await stream.send({ type: 'transcript.text.segment', ...shownSegment(event.segment) });
      } else if (event.type === 'finish') {
        const { inputTokens, outputTokens } = event;
        job.note({ output_tokens: outputTokens });
        await stream.send({
          type: 'transcript.text.done',
          text,
          ...logprobsOf(segments),
          usage: {
            type: 'tokens',
            input_tokens: inputTokens,
            input_token_details: { text_tokens: 0, audio_tokens: inputTokens },
            output_tokens: outputTokens,
            total_tokens: inputTokens + outputTokens,
          },
        });
      }
    }
  });
}
