/** The transcription listener: POST /v1/audio/transcriptions and /v1/audio/translations, whole or as server-sent events. */
import type { Express, Response } from 'express';
import type { TranscriptSegment, TranscriptionEvent } from '../engine/api.ts';
import { ListenerContext, createApp } from './app.ts';
import type { AppOptions, Job } from './app.ts';
import type { CodecPool } from './codec-pool.ts';
import { addRoute } from './common-routes.ts';
import { HttpError, toHttpError, unsupportedValue } from './http-error.ts';
import { readForm } from './multipart.ts';
import { EventStream } from './sse.ts';
import { parseTranscriptionForm } from './transcription-schema.ts';
import type { TranscriptionCall } from './transcription-schema.ts';
import { sendTranscript } from './transcript-formats.ts';

export interface TranscriptionAppOptions extends AppOptions {
  readonly codec: CodecPool;
  /** Bytes of one file; 25 MiB as OpenAI has it. */
  readonly maxFileBytes?: number;
}

const DEFAULT_FILE_BYTES = 25 << 20;
/** Bytes of uploads held at once; beyond that, requests are refused before they are read. */
const MAX_HELD_BYTES = 512 << 20;

/** The app of the transcription listener; no side effects until it is listened on. */
export function createTranscriptionApp(options: TranscriptionAppOptions): Express {
  const context = new ListenerContext('transcription', options);
  const maxFileBytes = options.maxFileBytes ?? DEFAULT_FILE_BYTES;
  let heldBytes = 0;
  const handle = (task: 'transcribe' | 'translate') =>
    context.job(async (request, response, job) => {
      // A chunked upload does not say how much it brings.
      const share = Math.min(Number(request.get('content-length') ?? maxFileBytes), maxFileBytes);
      if (heldBytes + share > MAX_HELD_BYTES) {
        throw new HttpError(503, 'queue_full', 'too many uploads at once', { headers: { 'retry-after': '1' } });
      }
      heldBytes += share;
      try {
        const form = await readForm(request, maxFileBytes);
        const call = parseTranscriptionForm(form, { modelOptional: options.modelOptional ?? false, task });
        if (call.model !== undefined) context.checkModel(call.model);
        if (task === 'translate') checkTranslates(context);
        job.note({ bytes: call.file.length, stream: call.stream, format: call.format });
        const samples = await options.codec.decode(call.file);
        const events = countEvents(context, job, context.engine.transcribe({ ...call.request, samples }, job.signal));
        await (call.stream ? sendStream(response, events, job) : sendWhole(response, events, call));
      } finally {
        heldBytes -= share;
      }
    });
  return createApp(context, (router) => {
    addRoute(router, 'post', '/audio/transcriptions', handle('transcribe'));
    addRoute(router, 'post', '/audio/translations', handle('translate'));
  });
}

/** 400 where the model writes only what it hears. */
function checkTranslates(context: ListenerContext): void {
  if (context.model()?.translates) return;
  const message = `the model '${context.options.modelId}' cannot translate: that needs a multilingual Whisper; /v1/audio/transcriptions transcribes`;
  throw unsupportedValue('model', message);
}

async function* countEvents(
  context: ListenerContext,
  job: Job,
  events: AsyncIterable<TranscriptionEvent>,
): AsyncGenerator<TranscriptionEvent> {
  let first = true;
  for await (const event of events) {
    if (event.type === 'segment' && first) {
      first = false;
      context.metrics.firstOutput(job.elapsed());
    } else if (event.type === 'finish') {
      context.metrics.audio(event.duration, job.elapsed());
      job.note({ audio_seconds: Number(event.duration.toFixed(3)), output_tokens: event.outputTokens });
    }
    yield event;
  }
}

async function sendWhole(
  response: Response,
  events: AsyncIterable<TranscriptionEvent>,
  { format, request: { task = 'transcribe' } }: TranscriptionCall,
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
  warn(response, start);
  sendTranscript(response, format, { task, start, segments, finish });
}

/** What is served otherwise than asked goes into a header: the bodies have no place for it. */
function warn(response: Response, { warnings = [] }: Extract<TranscriptionEvent, { type: 'start' }>): void {
  if (warnings.length > 0) response.set('x-parley-warning', warnings.join('; '));
}

/** Deltas that concatenate to the final text: space at its start and end is dropped, so trailing space waits for what follows it. */
async function sendStream(response: Response, events: AsyncIterable<TranscriptionEvent>, job: Job): Promise<void> {
  const stream = new EventStream(response);
  let begun = false;
  let text = '';
  let held = '';
  try {
    for await (const event of events) {
      if (event.type === 'start') warn(response, event);
      if (!begun) stream.begin();
      begun = true;
      if (event.type === 'segment') {
        const grown = text === '' ? event.segment.text.trimStart() : held + event.segment.text;
        const delta = grown.trimEnd();
        held = grown.slice(delta.length);
        text += delta;
        if (delta !== '') await stream.send({ type: 'transcript.text.delta', delta });
      } else if (event.type === 'finish') {
        const { inputTokens, outputTokens } = event;
        await stream.send({
          type: 'transcript.text.done',
          text,
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
  } catch (error) {
    if (!begun) throw error;
    if (response.destroyed) return;
    const shown = toHttpError(job.signal.aborted ? job.signal.reason : error);
    job.note({ code: shown.code });
    await stream.send(shown.body);
  }
  await stream.sendDone();
  stream.end();
}
