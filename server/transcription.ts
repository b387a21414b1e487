/** The transcription listener: POST /v1/audio/transcriptions, as JSON, plain text or server-sent events. */
import type { Express, Response } from 'express';
import type { TranscriptionEvent } from '../engine/api.ts';
import { ListenerContext, createApp } from './app.ts';
import type { AppOptions, Job } from './app.ts';
import type { CodecPool } from './codec-pool.ts';
import { addRoute } from './common-routes.ts';
import { HttpError, toHttpError } from './http-error.ts';
import { readForm } from './multipart.ts';
import { EventStream } from './sse.ts';
import { parseTranscriptionForm } from './transcription-schema.ts';
import type { TranscriptFormat } from './transcription-schema.ts';

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
  return createApp(context, (router) => {
    addRoute(
      router,
      'post',
      '/audio/transcriptions',
      context.job(async (request, response, job) => {
        // A chunked upload does not say how much it brings.
        const share = Math.min(Number(request.get('content-length') ?? maxFileBytes), maxFileBytes);
        if (heldBytes + share > MAX_HELD_BYTES) {
          throw new HttpError(503, 'queue_full', 'too many uploads at once', { headers: { 'retry-after': '1' } });
        }
        heldBytes += share;
        try {
          const call = parseTranscriptionForm(await readForm(request, maxFileBytes), options.modelOptional ?? false);
          if (call.model !== undefined) context.checkModel(call.model);
          job.note({ bytes: call.file.length, stream: call.stream });
          const samples = await options.codec.decode(call.file);
          const events = countEvents(context, job, context.engine.transcribe({ ...call.request, samples }, job.signal));
          await (call.stream ? sendStream(response, events, job) : sendWhole(response, events, call.format));
        } finally {
          heldBytes -= share;
        }
      }),
    );
  });
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
