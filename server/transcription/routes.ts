/** The transcription listener: POST /v1/audio/transcriptions and /v1/audio/translations, as one body or as SSE. */
import type { Express, Response } from 'express';
import { z } from 'zod';
import type { TranscriptionEvent } from '../../engine/api.ts';
import { createApp } from '../listener/app.ts';
import { ListenerContext } from '../listener/context.ts';
import type { AppOptions, Job } from '../listener/context.ts';
import type { CodecPool } from '../audio/pool.ts';
import { decodedBytes, sampleBytes } from '../audio/upload/decode.ts';
import { countAudio, relay } from '../listener/relay.ts';
import type { AudioCount } from '../listener/relay.ts';
import { EVENT_TYPE, JSON_TYPE } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { readForm } from '../body/multipart.ts';
import { checkTranslates, describeTranscriptionForm, parseTranscriptionForm } from './schema.ts';
import type { TranscriptionCall } from './schema.ts';
import { transcriptEventSchema, transcriptSchema } from './answer-schema.ts';
import { collect, shownTranscript, transcriptEvents } from './formats.ts';
import { UPLOAD_LIMITS, UploadBudget } from '../body/upload-budget.ts';
import type { UploadLimits } from '../body/upload-budget.ts';

export interface TranscriptionAppOptions extends AppOptions {
  readonly codec: CodecPool;
  /** Most bytes of one file; default 25 MiB, as for OpenAI. */
  readonly maxFileBytes?: number;
  /** Overrides of UPLOAD_LIMITS. */
  readonly uploadLimits?: Partial<UploadLimits>;
}

const DEFAULT_FILE_BYTES = 25 << 20;

/** Makes the app of the transcription listener; it does nothing until it is listened on. */
export function createTranscriptionApp(options: TranscriptionAppOptions): Express {
  const context = new ListenerContext('transcription', options);
  const maxFileBytes = options.maxFileBytes ?? DEFAULT_FILE_BYTES;
  // One address may have half of the budget, and a form is a little larger than its file.
  const maxBytes = Math.max(UPLOAD_LIMITS.maxBytes, 4 * maxFileBytes);
  const budget = new UploadBudget({ maxBytes, ...options.uploadLimits });
  const handle = (task: 'transcribe' | 'translate') =>
    context.job(
      async (request, response, job) => {
        const { form, upload } = await readForm(request, maxFileBytes, budget, job.signal);
        try {
          context.noteFields(request, form.fields.keys());
          const call = parseTranscriptionForm(form, { modelOptional: options.modelOptional ?? false, task });
          if (call.model !== undefined) context.checkModel(call.model);
          if (task === 'translate') checkTranslates(options.modelId, context.model());
          job.note({ bytes: call.file.length, stream: call.stream, format: call.format });
          warn(response, call.warnings);
          job.enter('unpack');
          await upload.reserve(decodedBytes(call.file), job.signal);
          const { samples, warnings, discard } = await options.codec.decode(call.file, job.signal);
          try {
            upload.settle(sampleBytes(samples));
            warn(response, warnings);
            job.enter('encode');
            const transcribed = context.engine.transcribe({ ...call.request, samples }, job.signal);
            const events = countAudio(context, job, transcribed, COUNT);
            await (call.stream
              ? relay(response, job, transcriptEvents(noted(response, events, job), call))
              : sendWhole(response, events, call, job));
          } finally {
            await discard();
          }
        } finally {
          upload.close();
        }
      },
      { begins: 'receive' },
    );
  const route = (task: 'transcribe' | 'translate', path: string, summary: string): Route => ({
    method: 'post',
    path,
    summary,
    tags: ['transcription'],
    body: () => ({ 'multipart/form-data': describeTranscriptionForm(context.names) }),
    answers: { [JSON_TYPE]: transcriptSchema, 'text/plain': z.string(), 'text/vtt': z.string(), [EVENT_TYPE]: transcriptEventSchema },
    generates: { operation: task === 'translate' ? 'translation' : 'transcription', output: 'text' },
    handler: handle(task),
  });
  return createApp(context, [
    route('transcribe', '/v1/audio/transcriptions', 'Transcribes speech'),
    route('translate', '/v1/audio/translations', 'Translates speech into English, where the model can'),
  ]);
}

const COUNT: AudioCount<TranscriptionEvent> = {
  isOutput: ({ type }) => type === 'segment',
  phase: ({ type }) => (type === 'segment' ? 'decode' : undefined),
  seconds: (event) => (event.type === 'finish' ? event.duration : undefined),
  tokens: (event) => (event.type === 'finish' ? event.inputTokens + event.outputTokens : 0),
};

async function sendWhole(response: Response, events: AsyncIterable<TranscriptionEvent>, call: TranscriptionCall, job: Job): Promise<void> {
  const transcript = await collect(events, call);
  warn(response, transcript.start.warnings);
  job.note({ output_tokens: transcript.finish.outputTokens });
  const { type, body } = shownTranscript(call, transcript);
  if (typeof body === 'string') response.type(type).send(body);
  else response.json(body);
}

/** Adds warnings as x-parley-warning headers, since the response formats have no place for them. */
function warn(response: Response, warnings: readonly string[] = []): void {
  for (const warning of warnings) response.append('x-parley-warning', warning);
}

/** Passes events through; sends warnings as headers and adds the output tokens to the log line. */
async function* noted(response: Response, events: AsyncIterable<TranscriptionEvent>, job: Job): AsyncGenerator<TranscriptionEvent> {
  for await (const event of events) {
    if (event.type === 'start') warn(response, event.warnings);
    if (event.type === 'finish') job.note({ output_tokens: event.outputTokens });
    yield event;
  }
}
