/** The transcription listener: POST /v1/audio/transcriptions, as JSON, plain text or server-sent events. */
import type { Express, Response } from 'express';
import type { TranscriptionEvent } from '../engine/api.ts';
import { ListenerContext, createApp } from './app.ts';
import type { AppOptions, Job } from './app.ts';
import type { CodecPool } from './codec-pool.ts';
import { addRoute } from './common-routes.ts';
import { decodedBytes } from './decode.ts';
import { toHttpError } from './http-error.ts';
import { readForm } from './multipart.ts';
import { EventStream } from './sse.ts';
import { parseTranscriptionForm } from './transcription-schema.ts';
import type { TranscriptFormat } from './transcription-schema.ts';
import { UPLOAD_LIMITS, UploadBudget } from './upload-budget.ts';
import type { UploadLimits } from './upload-budget.ts';

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
  return createApp(context, (router) => {
    addRoute(
      router,
      'post',
      '/audio/transcriptions',
      context.job(async (request, response, job) => {
        const { form, upload } = await readForm(request, maxFileBytes, budget);
        try {
          const call = parseTranscriptionForm(form, options.modelOptional ?? false);
          if (call.model !== undefined) context.checkModel(call.model);
          job.note({ bytes: call.file.length, stream: call.stream });
          await upload.hear(COPIES * decodedBytes(call.file), job.signal);
          const samples = await options.codec.decode(call.file);
          const heard = context.engine.transcribe({ ...call.request, samples }, job.signal);
          const events = countEvents(
            context,
            job,
            settled(heard, () => upload.settle(samples.byteLength)),
          );
          await (call.stream ? sendStream(response, events, job) : sendWhole(response, events, call.format));
        } finally {
          upload.close();
        }
      }),
    );
  });
}

/** Copies of its samples while an upload goes through the codec worker to the engine's process, by measurement. */
const COPIES = 4;

/** Calls `settle` at the first event: then the engine has its samples, and only ours are left. */
async function* settled(events: AsyncIterable<TranscriptionEvent>, settle: () => void): AsyncGenerator<TranscriptionEvent> {
  let isFirst = true;
  for await (const event of events) {
    if (isFirst) settle();
    isFirst = false;
    yield event;
  }
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

async function sendWhole(response: Response, events: AsyncIterable<TranscriptionEvent>, format: TranscriptFormat): Promise<void> {
  let finish: Extract<TranscriptionEvent, { type: 'finish' }> | undefined;
  for await (const event of events) if (event.type === 'finish') finish = event;
  if (!finish) throw new TypeError('the engine ended a transcription without a finish');
  if (format === 'text') response.type('text/plain; charset=utf-8').send(`${finish.text}\n`);
  else response.json({ text: finish.text, usage: { type: 'duration', seconds: Math.ceil(finish.duration) } });
}

/** Deltas that concatenate to the final text: space at its start and end is dropped, so trailing space waits for what follows it. */
async function sendStream(response: Response, events: AsyncIterable<TranscriptionEvent>, job: Job): Promise<void> {
  const stream = new EventStream(response);
  let begun = false;
  let text = '';
  let held = '';
  try {
    for await (const event of events) {
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
