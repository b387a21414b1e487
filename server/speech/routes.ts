/** The speech listener: POST /v1/audio/speech in both request forms, GET /v1/audio/voices. */
import type { Express, Response } from 'express';
import type { SpeechEvent } from '../../engine/api.ts';
import { wavHeader } from '../../engine/audio/wav.ts';
import { EngineError, fromPlainError, toPlainError } from '../../engine/errors.ts';
import { createApp } from '../http/app.ts';
import { ListenerContext } from '../http/context.ts';
import type { AppOptions, Job } from '../http/context.ts';
import type { AudioEncoder, CodecPool } from '../audio/pool.ts';
import type { HttpError } from '../http/errors.ts';
import { modelLoading, toHttpError } from '../http/errors.ts';
import { jsonBody } from '../body/describe.ts';
import { readJsonObject } from '../body/json-body.ts';
import { describeSpeechBody, parseSpeechBody } from './schema.ts';
import type { SpeechCall, SpeechFormat, SpeechLimits } from './schema.ts';
import { countAudio, failureOf } from '../http/relay.ts';
import type { AudioCount } from '../http/relay.ts';
import { EVENT_TYPE } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { EventStream, writeWithPressure } from '../http/sse.ts';
import { VOICE_TABLE, parseBlend, resolveVoices } from '../../engine/util/voices.ts';
import type { VoiceTable } from '../../engine/util/voices.ts';

export interface SpeechAppOptions extends AppOptions {
  readonly codec: CodecPool;
  readonly maxInput?: number;
  readonly defaultFormat?: SpeechFormat;
  readonly legacy?: boolean;
  /** Other names of voices; those whose voice the model lacks are left out. */
  readonly voiceAliases?: VoiceTable;
}

/** The app of the speech listener; no side effects until it is listened on. */
export function createSpeechApp(options: SpeechAppOptions): Express {
  const context = new ListenerContext('speech', options);
  return createApp(context, [speechRoute(context, options), voicesRoute(context, options)]);
}

function speechRoute(context: ListenerContext, options: SpeechAppOptions): Route {
  return {
    method: 'post',
    path: '/v1/audio/speech',
    summary: 'Speaks a text',
    tags: ['speech'],
    body: () => jsonBody(describeSpeechBody({ ...context.names, ...ownLimits(options) })),
    answers: ['audio/mpeg', 'audio/ogg', 'audio/aac', 'audio/flac', 'audio/wav', 'audio/pcm', EVENT_TYPE],
    handler: context.job(async (request, response, job) => {
      const call = parseSpeechBody(await readJsonObject(request), limitsOf(context, options));
      if (call.model !== undefined) context.checkModel(call.model);
      if (call.legacy) response.set('deprecation', 'true');
      job.note({ format: call.format, delivery: call.delivery, voice: call.request.voice, characters: call.request.text.length });
      const events = countAudio(context, job, nameField(call, context.engine.synthesize(call.request, job.signal)), COUNT);
      await speak(events, call, options.codec, SENDERS[call.delivery](response, call, job));
    }),
  };
}

function voicesRoute(context: ListenerContext, options: SpeechAppOptions): Route {
  return {
    method: 'get',
    path: '/v1/audio/voices',
    summary: 'Voices',
    tags: ['speech'],
    handler: (_request, response) => {
      const { voices, aliases } = limitsOf(context, options);
      const others = [...aliases].map(([name, voice]) => describeAlias(name, voice));
      response.json({ voices: [...voices.map((name) => ({ id: name, name })), ...others] });
    },
  };
}

/** What the settings say of bodies. */
const ownLimits = ({ maxInput = 4096, defaultFormat = 'mp3', modelOptional = false, legacy = true }: SpeechAppOptions) => ({
  maxInput,
  defaultFormat,
  modelOptional,
  legacy,
});

function limitsOf(context: ListenerContext, options: SpeechAppOptions): SpeechLimits {
  const model = context.model();
  if (!model) throw modelLoading();
  const voices = model.voices ?? [];
  const aliases = resolveVoices(options.voiceAliases ?? VOICE_TABLE, voices);
  return { ...ownLimits(options), voices, aliases };
}

/** A name that stands for others: `made_of` says for what, and `alias_of` too where that is one voice. */
function describeAlias(name: string, voice: string): Readonly<Record<string, unknown>> {
  const parts = parseBlend(voice) ?? new Map([[voice, 1]]);
  const single = parts.size === 1 ? { alias_of: voice } : {};
  return { id: name, name, ...single, made_of: Object.fromEntries(parts) };
}

/** The engine calls the text `text`, as the earlier form does; the current form calls it `input`. */
async function* nameField({ legacy }: SpeechCall, events: AsyncIterable<SpeechEvent>): AsyncGenerator<SpeechEvent> {
  try {
    yield* events;
  } catch (error) {
    if (legacy || !(error instanceof EngineError) || error.param !== 'text') throw error;
    throw fromPlainError({ ...toPlainError(error), param: 'input' });
  }
}

const COUNT: AudioCount<SpeechEvent> = {
  isOutput: ({ type }) => type === 'audio',
  seconds: (event) => (event.type === 'finish' ? event.seconds : undefined),
};

interface Start {
  readonly seed: number;
  /** Hz of what is sent, and of what the model makes. */
  readonly sampleRate: number;
  readonly modelRate: number;
}

interface Usage {
  readonly inputTokens: number;
  readonly frames: number;
}

/** One way of getting encoded audio to the client. */
interface Sender {
  /** With the first sound, so that a failure before it is still a plain error. */
  begin(start: Start): void;
  send(bytes: Uint8Array): Promise<void>;
  /** `head` replaces the first bytes, if they have not left yet: it tells the length of the whole. */
  end(usage: Usage, head?: Uint8Array): Promise<void>;
  /** A failure after begin(). */
  fail(error: HttpError): Promise<void>;
}

/** Runs the events through the encoder into the sender. */
async function speak(events: AsyncIterable<SpeechEvent>, call: SpeechCall, codec: CodecPool, sender: Sender): Promise<void> {
  let start: Start | undefined;
  let encoder: AudioEncoder | undefined;
  let begun = false;
  try {
    for await (const event of events) {
      if (event.type === 'start')
        start = { seed: event.seed, sampleRate: call.sampleRate ?? event.sampleRate, modelRate: event.sampleRate };
      else if (!start) throw new TypeError('the engine sent audio before its start');
      else if (event.type === 'audio') {
        encoder ??= await codec.open(call.format === 'wav' ? 'pcm' : call.format, { from: start.modelRate, to: start.sampleRate });
        const bytes = await encoder.push(event.samples);
        if (!begun) sender.begin(start);
        begun = true;
        await sender.send(bytes);
      } else {
        if (!begun) sender.begin(start);
        begun = true;
        const last = await encoder?.finish();
        await sender.send(last?.bytes ?? new Uint8Array());
        await sender.end(event, last?.head);
      }
    }
  } catch (error) {
    if (!begun) throw error;
    await sender.fail(toHttpError(error));
  } finally {
    encoder?.discard();
  }
}

const MIME: Readonly<Record<SpeechFormat, (sampleRate: number) => string>> = {
  wav: () => 'audio/wav',
  mp3: () => 'audio/mpeg',
  opus: () => 'audio/ogg; codecs=opus',
  aac: () => 'audio/aac',
  flac: () => 'audio/flac',
  pcm: (sampleRate) => `audio/pcm; rate=${sampleRate}`,
};

function setAudioHeaders(response: Response, { format }: SpeechCall, { seed, sampleRate }: Start): void {
  response.status(200).set({
    'content-type': MIME[format](sampleRate),
    'content-disposition': `inline; filename="speech.${format}"`,
    'x-speech-seed': String(seed),
  });
}

/** Bytes that are held back for the sake of their number. */
const MAX_HELD_BYTES = 1 << 20;
/** Formats that begin with the length of the whole: they are held back however long they are. */
const HELD: readonly SpeechFormat[] = ['wav', 'flac'];

/**
 * One body with its exact length: clients store it as a file, and strict readers refuse open-ended headers. Where the format has none of its
 * own, a long body is sent as it is made, instead of being held.
 */
function wholeSender(response: Response, call: SpeechCall): Sender {
  const chunks: Uint8Array[] = [];
  let held = 0;
  let chunked: Sender | undefined;
  let start: Start | undefined;
  return {
    begin: (value) => void (start = value),
    send: async (bytes) => {
      if (chunked) return chunked.send(bytes);
      chunks.push(bytes);
      held += bytes.length;
      if (HELD.includes(call.format) || held <= MAX_HELD_BYTES || !start) return;
      chunked = chunkedSender(response, call);
      chunked.begin(start);
      for (const chunk of chunks.splice(0)) await chunked.send(chunk);
    },
    end: async (usage, head) => {
      if (chunked) return chunked.end(usage);
      if (!start) return;
      if (call.format === 'wav') chunks.unshift(wavHeader(start.sampleRate, held));
      const body = Buffer.concat(chunks);
      if (head) body.set(head);
      setAudioHeaders(response, call, start);
      response.set('content-length', String(body.length)).end(body);
    },
    fail: (error) => (chunked ? chunked.fail(error) : Promise.reject(error)),
  };
}

/** Bytes as they are made; a failure can only be shown by breaking the connection. */
function chunkedSender(response: Response, call: SpeechCall): Sender {
  return {
    begin: (start) => {
      setAudioHeaders(response, call, start);
      response.flushHeaders();
      if (call.format === 'wav') response.write(wavHeader(start.sampleRate));
    },
    send: (bytes) => (bytes.length > 0 ? writeWithPressure(response, bytes) : Promise.resolve()),
    end: async () => void response.end(),
    fail: async () => void response.destroy(),
  };
}

/** Base64 in events; a failure is an event too. */
function eventSender(response: Response, call: SpeechCall, job: Job): Sender {
  const stream = new EventStream(response);
  const send = async (bytes: Uint8Array): Promise<void> => {
    if (bytes.length > 0) await stream.send({ type: 'speech.audio.delta', audio: Buffer.from(bytes).toString('base64') });
  };
  let header: Uint8Array | undefined;
  return {
    begin: (start) => {
      response.set('x-speech-seed', String(start.seed));
      stream.begin();
      if (call.format === 'wav') header = wavHeader(start.sampleRate);
    },
    send: async (bytes) => {
      await send(header ? Buffer.concat([header, bytes]) : bytes);
      header = undefined;
    },
    end: async ({ inputTokens, frames }) => {
      const usage = { input_tokens: inputTokens, output_tokens: frames, total_tokens: inputTokens + frames };
      await stream.send({ type: 'speech.audio.done', usage });
      stream.end();
    },
    fail: async (error) => {
      if (response.destroyed) return;
      await stream.send(failureOf(job, error).body);
      stream.end();
    },
  };
}

const SENDERS: Readonly<Record<SpeechCall['delivery'], (response: Response, call: SpeechCall, job: Job) => Sender>> = {
  whole: wholeSender,
  chunked: chunkedSender,
  sse: eventSender,
};
