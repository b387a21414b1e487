/** An Engine without a GPU: answers at once, or as slowly as a test wants, and remembers what it was asked. */
import { readFileSync } from 'node:fs';
import type {
  ChatEvent,
  ChatRequest,
  EngineInfo,
  EngineStatus,
  MemoryUse,
  ProfileEntry,
  SampleFile,
  SpeechEvent,
  SpeechRequest,
  TokenizeRequest,
  TokenizerInfo,
  TranscriptionEvent,
  TranscriptionRequest,
} from '../../engine/api.ts';
import { operations } from '../../engine/protocol.ts';
import type { Engine, Operations } from '../../engine/protocol.ts';
import { EngineError } from '../../engine/errors.ts';
import { EMPTY_STATUS } from '../../engine/status.ts';

export const VOICES: readonly string[] = [
  ...[1, 2, 3, 4, 5, 6].map((n) => `aus-female-${n}`),
  ...[1, 2, 3, 4, 5, 6, 7].map((n) => `aus-male-${n}`),
  'charter',
  'gaius',
  '_gantry',
  'nona',
  'oni',
  'vulcan',
];

/** 64 pages of 16 tokens. */
/** Milliseconds of a pause that only a release ends: nearly the most that a timer takes. */
const HELD = 2e9;
const FAKE_MEMORY: MemoryUse = { deviceBytes: 1e6, source: 'as set', fraction: 0.8, otherBytes: 0, weightBytes: 4000, activationBytes: 0, kvBytes: 1024, kvPages: 64, pageSize: 16, kvCacheDtype: 'f16' }; // prettier-ignore

export const FAKE_INFO: EngineInfo = {
  adapter: { name: 'fake adapter', vendor: 'test', architecture: 'none', software: true, family: 'cpu', features: [], limits: {} },
  models: [
    {
      id: 'parley-chat',
      task: 'chat',
      architecture: 'llama',
      parameters: 1000,
      weightBytes: 4000,
      contextLength: 1024,
      memory: FAKE_MEMORY,
    },
    { id: 'parley-speech', task: 'speech', architecture: 'kokoro', parameters: 1000, weightBytes: 4000, voices: VOICES, sampleRate: 24000 },
    { id: 'parley-transcribe', task: 'transcription', architecture: 'whisper', parameters: 1000, weightBytes: 4000 },
  ],
};

/** A transcription's prompt that the fake engine warns of. */
export const UNHEEDED = 'unheeded';

export interface FakeOptions {
  /** Whether its transcription model can translate. */
  readonly translates?: boolean;
  /** Texts of a chat answer's deltas. */
  readonly words?: readonly string[];
  /** Whole deltas instead, of choice 0; with tool calls the answer ends as one. */
  readonly deltas?: readonly Partial<Extract<ChatEvent, { type: 'delta' }>>[];
  /** Milliseconds between two events. */
  readonly delay?: number;
  /** The same for the first events, one after the other; the last of them goes for the rest. */
  readonly delays?: readonly number[];
  /** Events after which a call waits until it is released, or ends. */
  readonly holdAfter?: number;
  /** Thrown after this many events of a call (0 = at once). */
  readonly failAfter?: number;
  readonly failWith?: Error;
}

/** Every operation, refused: an engine's class says for itself what it fakes. */
class Refusing {}
Object.assign(
  Refusing.prototype,
  operations((name) => () => {
    throw new Error(`the fake engine has no ${name}`);
  }),
);

/** It has every operation; those that the class does not fake refuse. */
// eslint-disable-next-line typescript/no-unsafe-declaration-merging -- the prototype of Refusing has them all
export interface FakeEngine extends Operations {}

/** Answers chat with `words`, speech with a tone whose pitch depends on the voice, transcription with the length it heard. */
export class FakeEngine extends Refusing implements Engine {
  options: FakeOptions;
  state: EngineStatus['state'] = 'ready';
  readonly chats: ChatRequest[] = [];
  readonly speeches: SpeechRequest[] = [];
  readonly transcriptions: TranscriptionRequest[] = [];
  /** Calls that were aborted while they ran, and events handed out in total. */
  aborted = 0;
  handedOut = 0;
  closed = false;
  flushes = 0;
  /** What its status says besides. */
  load: Partial<EngineStatus> = {};
  #running = 0;
  #released = new AbortController();

  constructor(options: FakeOptions = {}) {
    super();
    this.options = options;
  }

  info(): EngineInfo {
    const { translates } = this.options;
    if (!translates) return FAKE_INFO;
    const models = FAKE_INFO.models.map((model) => (model.task === 'transcription' ? { ...model, translates } : model));
    return { ...FAKE_INFO, models };
  }

  status(): EngineStatus {
    return {
      ...EMPTY_STATUS,
      ...this.load,
      state: this.state,
      running: this.#running,
      pending: this.#running > 0,
      generatedTokens: this.handedOut,
    };
  }

  chat(request: ChatRequest, signal: AbortSignal): AsyncIterable<ChatEvent> {
    this.chats.push(request);
    const { deltas, words = ['Hello', ' there', '!'] } = this.options;
    return this.#paced(deltas ? scriptedEvents(deltas) : chatEvents(request, words), signal);
  }

  synthesize(request: SpeechRequest, signal: AbortSignal): AsyncIterable<SpeechEvent> {
    this.speeches.push(request);
    return this.#paced(speechEvents(request), signal);
  }

  transcribe(
    { samples, ...asked }: TranscriptionRequest<Float32Array | SampleFile>,
    signal: AbortSignal,
  ): AsyncIterable<TranscriptionEvent> {
    // A file of samples is there for as long as its call.
    const request = { ...asked, samples: samples instanceof Float32Array ? samples : readSamples(samples) };
    this.transcriptions.push(request);
    return this.#paced(transcriptionEvents(request), signal);
  }

  /** One token a character. */
  async tokenize({ prompt, messages = [], addSpecialTokens = true }: TokenizeRequest): Promise<readonly number[]> {
    const text = prompt ?? messages.map(({ content }) => (typeof content === 'string' ? content : '')).join('\n');
    return [...(addSpecialTokens && prompt !== undefined ? [1] : []), ...[...text].map((character) => character.codePointAt(0)!)];
  }

  async detokenize(tokens: readonly number[]): Promise<string> {
    if (tokens.some((token) => token > 0x10ffff)) throw new EngineError('invalid_request', 'no such token', { param: 'tokens' });
    return String.fromCodePoint(...tokens);
  }

  async tokenizerInfo(): Promise<TokenizerInfo> {
    return { bosToken: '\u0001', eosToken: null, chatTemplate: '{{ messages[0].content }}' };
  }

  async flushCache(): Promise<void> {
    this.flushes++;
  }

  async profile(): Promise<readonly ProfileEntry[]> {
    return [];
  }

  /** Every call that runs goes on without its delays. */
  release(): void {
    this.#released.abort();
    this.#released = new AbortController();
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  async *#paced<Event>(events: Iterable<Event>, signal: AbortSignal): AsyncGenerator<Event> {
    const {
      delay = 0,
      delays,
      holdAfter,
      failAfter,
      failWith = new EngineError('internal', 'the fake engine was told to fail'),
    } = this.options;
    const going = AbortSignal.any([signal, this.#released.signal]);
    let count = 0;
    let finished = false;
    this.#running++;
    try {
      for (const event of events) {
        const wait = count === holdAfter ? HELD : delays ? (delays[Math.min(count, delays.length - 1)] ?? 0) : delay;
        if (failAfter === count++) throw failWith;
        if (wait) await pause(wait, going);
        if (signal.aborted) throw new EngineError('aborted', 'aborted');
        this.handedOut++;
        yield event;
      }
      finished = true;
    } finally {
      this.#running--;
      if (!finished && signal.aborted) this.aborted++;
    }
  }
}

function readSamples({ path, encoding }: SampleFile): Float32Array {
  const bytes = new Uint8Array(readFileSync(path));
  if (encoding === 'f32') return new Float32Array(bytes.buffer);
  // A loop: Float32Array.from takes many times as long, and recordings have millions of samples.
  const values = new Int16Array(bytes.buffer);
  const samples = new Float32Array(values.length);
  for (let i = 0; i < values.length; i++) samples[i] = values[i]! / 0x8000;
  return samples;
}

function* chatEvents(request: ChatRequest, words: readonly string[]): Generator<ChatEvent> {
  const cap = Math.min(words.length, request.maxTokens ?? Infinity);
  yield { type: 'start', promptTokens: request.prompt?.length ?? request.messages.length * 10, cachedTokens: 0 };
  const choices = Array.from({ length: request.n ?? 1 }, (_, index) => index);
  for (const text of words.slice(0, cap)) for (const index of choices) yield { type: 'delta', index, text, tokens: 1 };
  const reason = cap < words.length ? 'length' : 'stop';
  for (const index of choices) yield { type: 'finish', index, reason, stopReason: null, completionTokens: cap, cachedTokens: 3 };
}

function* scriptedEvents(deltas: NonNullable<FakeOptions['deltas']>): Generator<ChatEvent> {
  yield { type: 'start', promptTokens: 10, cachedTokens: 0 };
  for (const delta of deltas) yield { type: 'delta', index: 0, text: '', tokens: 1, ...delta };
  const reason = deltas.some(({ toolCalls }) => toolCalls) ? 'tool_calls' : 'stop';
  yield { type: 'finish', index: 0, reason, stopReason: null, completionTokens: deltas.length, cachedTokens: 0 };
}

function* speechEvents({ text, voice, seed = 7 }: SpeechRequest): Generator<SpeechEvent> {
  yield { type: 'start', seed, sampleRate: 24000 };
  const frequency = 100 + 20 * VOICES.indexOf(voice) + (seed % 10);
  const sentences = text.split(/(?<=\.) /);
  for (const sentence of sentences) {
    const samples = Float32Array.from({ length: 2400 }, (_, i) => 0.5 * Math.sin((2 * Math.PI * frequency * i) / 24000));
    yield { type: 'audio', samples, text: sentence };
  }
  yield { type: 'finish', inputTokens: text.length, frames: sentences.length * 4, seconds: sentences.length * 0.1 };
}

function* transcriptionEvents(request: TranscriptionRequest): Generator<TranscriptionEvent> {
  const { samples, language, temperature = 0, prompt, timestamps, logprobs } = request;
  const duration = samples.length / 16000;
  const detected = { language: 'cy', probability: 0.25 };
  yield {
    type: 'start',
    duration,
    language: language ?? 'en',
    ...(!language && { detected }),
    ...(prompt === UNHEEDED && { warnings: ["'prompt' is ignored"] }),
  };
  const scores = { seek: 0, temperature, avgLogprob: -0.1, compressionRatio: 0.7, noSpeechProb: 0 };
  const texts = [' Heard', ` ${duration.toFixed(2)} seconds.`];
  for (const [id, text] of texts.entries()) {
    const parts = text.match(/ \S+/g)!;
    const words = parts.map((word, i) => ({ text: word, start: id + i / 4, end: id + (parts.length === 1 ? 0.5 : (i + 1) / 4) }));
    const token = { token: text, bytes: [...new TextEncoder().encode(text)], logprob: -0.25 };
    const details = { ...(timestamps === 'word' && { words }), ...(logprobs && { logprobs: [token] }) };
    yield { type: 'segment', segment: { id, start: id, end: id + 1, text, tokens: [1], ...scores, ...details } };
  }
  yield { type: 'finish', text: texts.join('').trim(), duration, inputTokens: 4, audioTokens: 3, outputTokens: 2 };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (signal.aborted) return done();
    signal.addEventListener('abort', done, { once: true });
  });
}
