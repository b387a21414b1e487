/** The three OpenAI-compatible listeners behind the engine's own interface, so that views do not know where the work is done. */
import type { ChatEvent, ChatRequest, SpeechEvent, SpeechRequest, TranscriptionEvent, TranscriptionRequest } from '../../../engine/api.ts';
import type { Engine } from '../../../engine/protocol.ts';
import { isWav, parseWav, wavToMono, writeWav } from '../../../engine/audio/wav.ts';
import { computed, signal } from '@preact/signals';
import type { ReadonlySignal, Signal } from '@preact/signals';
import { EngineError } from '../../../engine/errors.ts';
import { samplingToWire } from '../../../engine/sampling.ts';
import { isLoopback } from '../../../sources/index.ts';
import { CAPTURE_RATE } from '../audio/microphone.ts';
import { ServerGoneError } from '../failure.ts';
import { languageCode } from '../models/about-words.ts';
import type { ModelAbout, ModelTask } from '../models/manifest.ts';
import { chatEvents } from './chat-stream.ts';
import { listedAbout, voicesOf } from './listed-model.ts';
import type { ListedModel } from './listed-model.ts';
import { serverError } from './server-error.ts';
import { isWebAddress } from './servers.ts';
import { segmentsOf } from './transcript-answer.ts';
import type { TranscriptAnswer } from './transcript-answer.ts';

/** A speech event of a server; not every server says which seed it used. */
type SpokenEvent =
  | Exclude<SpeechEvent, { readonly type: 'start' }>
  | (Omit<Extract<SpeechEvent, { readonly type: 'start' }>, 'seed'> & { readonly seed?: number });

/** The engine that a view computes with: the tab's or the listeners. */
export type TaskEngine = Pick<Engine, 'chat'> & {
  synthesize(request: SpeechRequest, signal: AbortSignal): AsyncIterable<SpokenEvent>;
  transcribe(request: TranscriptionRequest, signal: AbortSignal): AsyncIterable<TranscriptionEvent>;
};

export interface RemoteOptions {
  /** Base URLs ending in /v1. */
  readonly servers: Readonly<Record<ModelTask, string>>;
  readonly apiKey: string;
  /** Id of the model that the person chose for a task, which its server may not list any more; reads signals. */
  readonly chosen?: (task: ModelTask) => string | undefined;
}

/** What a task's server lists: at least one model, and voices if it speaks. */
interface Served {
  readonly models: readonly ListedModel[];
  readonly voices?: readonly string[];
}

type ByTask<T> = Partial<Readonly<Record<ModelTask, T>>>;

/** Seconds of silence that are sent to find out a server's richest format. */
const PROBE_SECONDS = 0.5;

type TranscriptFormat = 'verbose_json' | 'json';

/** Speaks HTTP. Errors are EngineErrors with the server's own code and message where it gave one, else ServerGoneErrors. */
export class RemoteEngine implements TaskEngine {
  readonly #options: RemoteOptions;
  readonly #served: Signal<ByTask<Served>> = signal({});
  /** Ids of the models that the servers list, by task, as far as known. */
  readonly listed: ReadonlySignal<ByTask<readonly string[]>> = computed(() => this.#each((_, { models }) => models.map(({ id }) => id)));
  /** Ids of the models that answer: the chosen one, else the first of its server. */
  readonly names: ReadonlySignal<ByTask<string>> = computed(() => this.#each((task) => this.#modelOf(task)!.id));
  /** What the servers say about these models, by task; absent where they say nothing. */
  readonly abouts: ReadonlySignal<ByTask<ModelAbout>> = computed(() =>
    this.#each((task, { voices }) => ({ ...listedAbout(this.#modelOf(task)!), ...(voices && { voices }) })),
  );
  /** The tasks whose list is still valid: one is dropped when its server may have restarted with another model. */
  readonly #current = new Set<ModelTask>();
  /** The richest transcript formats that models support, by id, once probed. */
  readonly #formats = new Map<string | undefined, TranscriptFormat>();

  constructor(options: RemoteOptions) {
    this.#options = options;
  }

  /**
   * Returns the served id of a listener's model. Callers before it is known each send a request of their own, so that one that aborts does
   * not fail the others.
   */
  async model(task: ModelTask, signal?: AbortSignal): Promise<string> {
    return this.#known(task) ?? this.#ask(task, signal);
  }

  async *chat(request: ChatRequest, signal: AbortSignal): AsyncGenerator<ChatEvent> {
    const response = await this.#asModel('chat', signal, (model) => {
      const body = { ...chatBody(model, request), stream_options: { include_usage: true } };
      return this.#post('chat', '/chat/completions', JSON.stringify(body), signal, 'application/json');
    });
    try {
      yield* chatEvents(response);
    } catch (error) {
      throw this.#interrupted('chat', error, signal);
    }
  }

  async *synthesize({ text, voice, speed, seed }: SpeechRequest, signal: AbortSignal): AsyncGenerator<SpokenEvent> {
    const spoken = { input: text, voice, response_format: 'wav', speed: speed ?? 1, ...(seed !== undefined && { seed }) };
    const response = await this.#asModel('speech', signal, (model) =>
      this.#post('speech', '/audio/speech', JSON.stringify({ model, ...spoken }), signal, 'application/json'),
    );
    const buffer = await response.arrayBuffer().catch((error: unknown) => {
      throw this.#interrupted('speech', error, signal);
    });
    const bytes = new Uint8Array(buffer);
    if (!isWav(bytes)) throw this.#unlike('speech', `a WAV file (${typeOf(response)})`);
    const wav = parseWav(bytes);
    const samples = wavToMono(wav);
    const used = Number(response.headers.get('x-speech-seed') ?? seed ?? NaN);
    yield { type: 'start', ...(!Number.isNaN(used) && { seed: used }), sampleRate: wav.sampleRate };
    yield { type: 'audio', samples, text };
    yield { type: 'finish', inputTokens: 0, frames: 0, seconds: samples.length / wav.sampleRate };
  }

  async *transcribe(request: TranscriptionRequest, signal: AbortSignal): AsyncGenerator<TranscriptionEvent> {
    const duration = request.samples.length / CAPTURE_RATE;
    const answer = await this.#transcription(request, signal, await this.#format(signal));
    // The next piece is sent with this language, and not every server accepts the name that it returns itself.
    const language = typeof answer.language === 'string' ? languageCode(answer.language) : request.language;
    yield { type: 'start', duration, language: language ?? '' };
    for (const [id, segment] of segmentsOf(answer, duration).entries()) {
      yield {
        type: 'segment',
        segment: { id, tokens: [], seek: 0, temperature: 0, avgLogprob: 0, compressionRatio: 0, noSpeechProb: 0, ...segment },
      };
    }
    yield { type: 'finish', text: answer.text, duration, inputTokens: 0, audioTokens: 0, outputTokens: 0 };
  }

  /**
   * Returns the richest format the model supports: `verbose_json`, which has times, else text alone. It is probed once with a moment of
   * silence, so that no recording is sent only to be refused.
   */
  async #format(signal: AbortSignal): Promise<TranscriptFormat> {
    const known = this.#formats.get(this.names.peek().transcription);
    if (known) return known;
    const silence = { samples: new Float32Array(PROBE_SECONDS * CAPTURE_RATE) };
    let format: TranscriptFormat = 'verbose_json';
    try {
      await this.#transcription(silence, signal, format);
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== 'invalid_request') throw error;
      // Not every server names the field in `param`.
      const isFormat = error.param === 'response_format' || /response_format|verbose_json/.test(error.message);
      if (isFormat) format = 'json';
    }
    this.#formats.set(this.names.peek().transcription, format);
    return format;
  }

  async #transcription(
    { samples, language, prompt, temperature }: TranscriptionRequest,
    signal: AbortSignal,
    format: TranscriptFormat,
  ): Promise<TranscriptAnswer> {
    const form = new FormData();
    form.set('file', new Blob([writeWav(samples, CAPTURE_RATE) as Uint8Array<ArrayBuffer>], { type: 'audio/wav' }), 'audio.wav');
    form.set('response_format', format);
    if (language) form.set('language', language);
    if (prompt) form.set('prompt', prompt);
    if (temperature !== undefined) form.set('temperature', String(temperature));
    const response = await this.#asModel('transcription', signal, (model) => {
      form.set('model', model);
      return this.#post('transcription', '/audio/transcriptions', form, signal);
    });
    const answer = (await response.json().catch((error: unknown) => {
      if (!(error instanceof SyntaxError)) throw this.#interrupted('transcription', error, signal);
    })) as Partial<TranscriptAnswer> | null | undefined;
    if (typeof answer?.text === 'string') return answer as TranscriptAnswer;
    throw this.#unlike('transcription', 'a transcript');
  }

  /**
   * Sends a request with the served model's id. If the server no longer knows that id, it has restarted with another model, and the request
   * is sent again with the new id.
   */
  async #asModel(task: ModelTask, signal: AbortSignal, ask: (model: string) => Promise<Response>): Promise<Response> {
    const known = this.#known(task);
    try {
      return await ask(known ?? (await this.#ask(task, signal)));
    } catch (error) {
      if (known === undefined || !(error instanceof EngineError) || this.#current.has(task)) throw error;
      return ask(await this.#ask(task, signal));
    }
  }

  #each<T>(of: (task: ModelTask, served: Served) => T): ByTask<T> {
    return Object.fromEntries(Object.entries(this.#served.value).map(([task, served]) => [task, of(task as ModelTask, served)]));
  }

  #modelOf(task: ModelTask): ListedModel | undefined {
    const models = this.#served.value[task]?.models;
    const chosen = this.#options.chosen?.(task);
    return models?.find(({ id }) => id === chosen) ?? models?.[0];
  }

  /** The id of a task's model; undefined while its server has to be asked. */
  #known(task: ModelTask): string | undefined {
    return this.#current.has(task) ? this.names.peek()[task] : undefined;
  }

  /** Asks a server for its models; returns the id of the one that answers. */
  async #ask(task: ModelTask, signal?: AbortSignal): Promise<string> {
    const init = signal ? { signal } : {};
    const response = await this.#fetch(task, '/models', init);
    const listed = (await response.json().catch((error: unknown) => {
      if (signal?.aborted) throw new EngineError('aborted', 'stopped', { cause: error });
    })) as { readonly data?: unknown } | null | undefined;
    if (!Array.isArray(listed?.data)) {
      const server = this.#options.servers[task];
      throw new EngineError('unsupported', `${server} answers, but not with a list of models: is this the address of the API, as in http://localhost:3000/v1?`); // prettier-ignore
    }
    const models = (listed.data as readonly (ListedModel | null)[]).filter((one) => typeof one?.id === 'string') as ListedModel[];
    if (models.length === 0) throw new EngineError('unsupported', `the ${task} server at ${this.#options.servers[task]} serves no model`);
    const voices = task === 'speech' ? await this.#voices(init) : undefined;
    this.#served.value = { ...this.#served.peek(), [task]: { models, ...(voices && { voices }) } };
    this.#current.add(task);
    return this.#modelOf(task)!.id;
  }

  /** Returns the model's own voices, without their aliases; undefined where a server does not list any. */
  async #voices(init: RequestInit): Promise<readonly string[] | undefined> {
    try {
      return voicesOf(await (await this.#fetch('speech', '/audio/voices', init)).json());
    } catch (error) {
      if (error instanceof ServerGoneError || init.signal?.aborted) throw error;
      return undefined; // other servers have no such list
    }
  }

  /** The error for an answer that is complete, and not what was asked for. */
  #unlike(task: ModelTask, what: string): EngineError {
    return new EngineError('unsupported', `${this.#options.servers[task]} answers, but not with ${what}.`);
  }

  /**
   * The error for an answer that broke off: the server's own error as it is, a broken connection as a ServerGoneError that names the
   * server.
   */
  #interrupted(task: ModelTask, error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted) return new EngineError('aborted', 'stopped', { cause: error });
    if (error instanceof EngineError) return error;
    // The server may come back with another model.
    this.#current.delete(task);
    const server = this.#options.servers[task];
    return new ServerGoneError(`The server at ${server} went away before its answer was complete.`, { cause: error });
  }

  async #post(task: ModelTask, path: string, body: BodyInit, signal: AbortSignal, contentType?: string): Promise<Response> {
    return this.#fetch(task, path, { method: 'POST', body, signal, ...(contentType && { headers: { 'content-type': contentType } }) });
  }

  async #fetch(task: ModelTask, path: string, init: RequestInit): Promise<Response> {
    const { servers, apiKey } = this.#options;
    const headers = { ...(init.headers as Record<string, string>), ...(apiKey !== '' && { authorization: `Bearer ${apiKey}` }) };
    // A relative address would send the question and the key to the page's own server.
    if (!isWebAddress(servers[task]))
      throw new ServerGoneError(`${servers[task]} is no web address. One looks like http://localhost:3000/v1.`);
    const url = servers[task].replace(/\/$/, '') + path;
    let response: Response;
    try {
      response = await fetch(url, { ...init, headers });
    } catch (error) {
      if (init.signal?.aborted) throw new EngineError('aborted', 'stopped', { cause: error });
      this.#current.delete(task);
      throw new ServerGoneError(await explainUnreachable(url, init.signal ?? null), { cause: error });
    }
    if (response.ok) return response;
    // Usually an unknown model: the server was restarted with another one.
    if (response.status === 404) this.#current.delete(task);
    throw await serverError(response);
  }
}

/** What a response says that it is. */
const typeOf = (response: Response): string => response.headers.get('content-type') ?? 'of no type';

/** The body of a chat request to a server, without the fields that only this page needs. */
export function chatBody(model: string, { messages, sampling, maxTokens, stop }: ChatRequest): object {
  return {
    model,
    messages,
    stream: true,
    ...samplingToWire(sampling),
    ...(maxTokens !== undefined && { max_completion_tokens: maxTokens }),
    ...(stop && stop.length > 0 && { stop }),
  };
}

/** Explains why fetch failed. Browsers hide the reason from pages, so this probes for it. */
async function explainUnreachable(url: string, signal: AbortSignal | null): Promise<string> {
  const { origin, hostname, port } = new URL(url);
  // A server on this machine needs no network.
  if (!navigator.onLine && hostname !== location.hostname && !isLoopback(hostname))
    return `This device is offline, so ${origin} cannot be reached.`;
  if (origin === location.origin) return `The server at ${origin} does not answer. Is it still running?`;
  const silent = await fetch(url, { mode: 'no-cors', signal }).then(
    () => false,
    () => true,
  );
  if (!silent) return `${origin} answers, but does not allow this page (CORS): start it with --cors-origin ${location.origin}.`;
  // A cross-origin isolated page cannot tell a server that answers without allowing it from one that does not answer.
  const cors = globalThis.crossOriginIsolated
    ? `it does not allow this page (CORS: start it with --cors-origin ${location.origin}), or `
    : '';
  return `Nothing answers at ${origin}${port ? '' : ' (no port given)'}, or ${cors}the browser does not let this page reach it.`;
}
