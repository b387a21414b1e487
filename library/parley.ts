/** The calls of the OpenAI client, answered by an engine in the same program: requests are validated and answers built by the listeners' own code, without HTTP. */
import type { Engine } from '../engine/protocol.ts';
import { EngineError } from '../engine/errors.ts';
import type { ModelInfo, SampleFile } from '../engine/api.ts';
import { MODEL_TASKS } from '../engine/model-types.ts';
import type { ModelTask } from '../engine/model-types.ts';
import { VOICE_TABLE, resolveVoices } from '../engine/util/voices.ts';
import { answerChunks, createEnvelope, wholeAnswer } from '../server/chat/answer.ts';
import { chatAnswer } from '../server/chat/choice.ts';
import { MAX_CHOICES } from '../server/chat/sampling-schema.ts';
import { parseChatBody } from '../server/chat/schema.ts';
import { describeBuild, fingerprint } from '../server/fingerprint.ts';
import { checkModelName, toHttpError } from '../server/http/errors.ts';
import { nameField, speak } from '../server/speech/speak.ts';
import type { Encoders } from '../server/speech/speak.ts';
import { SPEECH_ALIASES, parseSpeechBody, speechSettings } from '../server/speech/schema.ts';
import type { SpeechFormat } from '../server/speech/schema.ts';
import { collect, shownTranscript, transcriptEvents } from '../server/transcription/formats.ts';
import { TRANSCRIPTION_ALIASES, parseTranscriptionForm } from '../server/transcription/schema.ts';
import { APIUserAbortError, errorClass } from './errors.ts';
import { plainBody } from './body.ts';
import { formOf, bytesOf } from './form.ts';
import { responseOutlet } from './outlet.ts';
import { Stream } from './stream.ts';
import type { Parley, RequestOptions } from './types.ts';

/** What the calls need from their surroundings (Node or a page). */
export interface Host {
  /** The engine of a task; undefined if no model for it was loaded. */
  engine(task: ModelTask): Engine | undefined;
  readonly encoders: Encoders;
  /** Decodes a recording to mono samples for the engine; rejects when the signal is aborted. Call `discard` when the samples are no longer needed. */
  decode(
    bytes: Uint8Array<ArrayBuffer>,
    signal: AbortSignal,
  ): Promise<{ readonly samples: Float32Array | SampleFile; discard(): Promise<void> }>;
  /** Default audio format of speech requests. */
  readonly speechFormat: SpeechFormat;
  close(): Promise<void>;
}

/** Makes a Parley whose calls are answered by the host's engines. */
export function createParley(host: Host): Parley {
  const infos = MODEL_TASKS.flatMap((task) => modelOf(host.engine(task), task) ?? []);
  const closing = new AbortController();
  const calling = caller(closing.signal);
  // Running calls are aborted first; otherwise they would fail with the errors of the parts being closed.
  const close = (): Promise<void> => {
    closing.abort();
    return host.close();
  };
  return {
    chat: { completions: { create: createChat(host, calling) as Parley['chat']['completions']['create'] } },
    audio: {
      speech: { create: createSpeech(host, calling) },
      transcriptions: { create: createTranscription(host, calling) as Parley['audio']['transcriptions']['create'] },
    },
    models: infos.map(({ id, task, contextLength, voices }) => ({
      id,
      task,
      ...(contextLength !== undefined && { contextLength }),
      ...(voices && { voices }),
    })),
    close,
    [Symbol.asyncDispose]: close,
  };
}

const modelOf = (engine: Engine | undefined, task: ModelTask): ModelInfo | undefined =>
  engine?.info().models.find((model) => model.task === task);

type Body = object;

/** The engine and model of a task; throws EngineError if none was loaded, and HttpError 404 if another model was asked for. */
function served(host: Host, task: ModelTask, asked: string | undefined): { readonly engine: Engine; readonly model: ModelInfo } {
  const engine = host.engine(task);
  const model = modelOf(engine, task);
  if (!engine || !model) throw new EngineError('unsupported', `no ${task} model was loaded`, { param: 'model' });
  if (asked !== undefined) checkModelName(asked, [model.id, ...MODEL_ALIASES[task]]);
  return { engine, model };
}

/** Other ids by which the model of a task may be called. */
export const MODEL_ALIASES: Readonly<Record<ModelTask, readonly string[]>> = {
  chat: [],
  speech: SPEECH_ALIASES,
  transcription: TRANSCRIPTION_ALIASES,
};

function createChat(host: Host, calling: Calling) {
  return (body: Body, options?: RequestOptions): Promise<unknown> =>
    calling(options, async ({ controller, release }) => {
      const call = parseChatBody(plainBody(body), { modelOptional: true, maxRunningRequests: MAX_CHOICES });
      const { engine, model } = served(host, 'chat', call.model);
      const hash = await sha256(describeBuild(engine.info(), model));
      const answer = chatAnswer(call, createEnvelope(model.id, fingerprint(hash), 'chatcmpl'), 'reasoning_content');
      const sources = [engine.chat(call.request, controller.signal)];
      return call.stream ? streamOf(answerChunks(sources, answer), { controller, release }) : plain(await wholeAnswer(sources, answer));
    });
}

function createSpeech(host: Host, calling: Calling) {
  return (body: Body, options?: RequestOptions): Promise<Response> =>
    calling(options, async ({ controller, release, toError }) => {
      const { engine, model } = served(host, 'speech', undefined);
      const voices = model.voices ?? [];
      const rules = speechSettings({ modelOptional: true, legacy: false, defaultFormat: host.speechFormat });
      const call = parseSpeechBody(plainBody(body), { ...rules, voices, aliases: resolveVoices(VOICE_TABLE, voices) });
      served(host, 'speech', call.model);
      const { outlet, response } = responseOutlet(controller, toError);
      const spoken = speak(nameField(call, engine.synthesize(call.request, controller.signal)), call, host.encoders, outlet);
      spoken.then(release, release);
      return await Promise.race([response, spoken.then(() => response)]);
    });
}

function createTranscription(host: Host, calling: Calling) {
  return (body: Body, options?: RequestOptions): Promise<unknown> =>
    calling(options, async ({ controller, release }) => {
      const { file, ...fields } = { ...body } as { readonly file?: unknown };
      const form = { fields: formOf(plainBody(fields)), file: await untilAbort(bytesOf(file, controller.signal), controller.signal) };
      const call = parseTranscriptionForm(form, { modelOptional: true, task: 'transcribe' });
      const { engine } = served(host, 'transcription', call.model);
      const { samples, discard } = await host.decode(call.file, controller.signal);
      const events = discarding(engine.transcribe({ ...call.request, samples }, controller.signal), discard);
      if (call.stream) return streamOf(transcriptEvents(events, call), { controller, release });
      const { body: shown } = shownTranscript(call, await collect(events, call));
      return shown;
    });
}

/** Waits for a value, but rejects as soon as the signal is aborted, since reading a file may never end. */
async function untilAbort<Value>(value: Promise<Value>, signal: AbortSignal): Promise<Value> {
  signal.throwIfAborted();
  let abort = (): void => {};
  const aborted = new Promise<never>((_, reject) => (abort = () => reject(signal.reason as Error)));
  signal.addEventListener('abort', abort, { once: true });
  return Promise.race([value, aborted]).finally(() => signal.removeEventListener('abort', abort));
}

/** Passes events through, and calls `discard` when they end, fail or are left. */
async function* discarding<Event>(events: AsyncIterable<Event>, discard: () => Promise<void>): AsyncGenerator<Event> {
  try {
    yield* events;
  } finally {
    await discard();
  }
}

/** Converts an answer to what a client would have parsed from HTTP, without the undefined fields that JSON omits. */
const plain = (answer: object): unknown => JSON.parse(JSON.stringify(answer)) as unknown;

async function sha256(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A running call. */
interface Call {
  /** Aborting it ends the call. */
  readonly controller: AbortController;
  /** Stops listening to the caller's signal, which may outlive many calls. */
  release(): void;
  /** Converts a failure to the error that the caller gets. */
  toError(error: unknown): Error;
}

type Calling = ReturnType<typeof caller>;

/** The controllers that are to abort with a signal, and the listener that aborts them. */
interface Followers {
  readonly controllers: Set<AbortController>;
  readonly abort: () => void;
}

const followersOf = new WeakMap<AbortSignal, Followers>();

/**
 * Makes a controller abort with a signal, until the function is called that this returns. A signal has one listener for all its controllers, because Node takes more than
 * ten for a leak, and warns.
 */
function follow(signal: AbortSignal, controller: AbortController): () => void {
  let followers = followersOf.get(signal);
  if (!followers) {
    const controllers = new Set<AbortController>();
    followers = { controllers, abort: () => controllers.forEach((one) => one.abort()) };
    followersOf.set(signal, followers);
  }
  const { controllers, abort } = followers;
  if (controllers.size === 0) signal.addEventListener('abort', abort, { once: true });
  controllers.add(controller);
  return () => {
    if (controllers.delete(controller) && controllers.size === 0) signal.removeEventListener('abort', abort);
  };
}

/** Returns a function that runs calls: aborted by the caller's signal and by `closing`, with failures converted to the client's errors. */
function caller(closing: AbortSignal) {
  const aborted = (): Error => new APIUserAbortError(closing.aborted ? { message: 'This Parley was closed.' } : {});
  return async <Answer>(options: RequestOptions | undefined, run: (call: Call) => Promise<Answer>): Promise<Answer> => {
    const controller = new AbortController();
    const signals = [closing, ...(options?.signal ? [options.signal] : [])];
    if (signals.some((signal) => signal.aborted)) throw aborted();
    const followed = signals.map((signal) => follow(signal, controller));
    const release = (): void => followed.forEach((stop) => stop());
    // Leaving a stream aborts its controller too.
    controller.signal.addEventListener('abort', release, { once: true });
    const toError = (error: unknown): Error => (controller.signal.aborted ? aborted() : toApiError(error));
    try {
      const answer = await run({ controller, release, toError });
      // A stream or response that is still being read keeps listening to the signals.
      if (!(answer instanceof Stream) && !(answer instanceof Response)) release();
      return answer;
    } catch (error) {
      release();
      throw toError(error);
    }
  };
}

/** Makes a stream once its first event has arrived, so that an earlier failure rejects the call itself. */
async function streamOf(
  events: AsyncGenerator<object | undefined>,
  { controller, release }: Pick<Call, 'controller' | 'release'>,
): Promise<Stream<object>> {
  // A stream that nobody reads holds what its call needs, such as the file with the samples, until that is aborted.
  controller.signal.addEventListener('abort', () => void events.return(undefined).catch(() => {}), { once: true });
  let first: IteratorResult<object | undefined> | undefined = await events.next();
  let isOver = false;
  async function* items(): AsyncGenerator<object> {
    try {
      for (let next = first ?? (await events.next()); !next.done; next = await events.next()) {
        first = undefined;
        if (next.value) yield plain(next.value) as object;
      }
      isOver = true;
    } catch (error) {
      // Whoever aborted the stream needs no error.
      if (!controller.signal.aborted) throw toApiError(error);
    } finally {
      // As in OpenAI's client, an aborted controller tells that the stream was left early.
      if (isOver) release();
      else controller.abort();
      await events.return(undefined);
    }
  }
  const all = items();
  const end = all.return.bind(all);
  // A generator that is left before its first item runs none of its code.
  all.return = (value) => {
    if (!isOver) controller.abort();
    return end(value);
  };
  return new Stream(() => all, controller);
}

/** Converts any failure to the error that the OpenAI client would throw. */
export function toApiError(error: unknown): Error {
  const shown = toHttpError(error, ({ message, remedies }) => [message, ...remedies.map(describeRemedy)].join('; '));
  const isBug = shown.code === 'internal_error';
  // Unlike in an HTTP answer, the message of an internal error is shown, since caller and engine are one program.
  const said = isBug && error instanceof Error ? { ...shown.body.error, message: error.message } : shown.body.error;
  return new (errorClass(shown.status))(shown.status, said, undefined, new Headers(shown.headers), error);
}

function describeRemedy({ does, settings }: EngineError['remedies'][number]): string {
  const named = settings.map(({ name, value }) => `${name}${value === undefined ? '' : `: ${value}`}`);
  return `${does} with engine: { ${named.join(' } or engine: { ')} }`;
}
