/** Encodes the engine's speech events and writes them to an outlet: as one body, in chunks, or in SSE events. */
import type { SpeechEvent } from '../../engine/api.ts';
import { wavHeader } from '../../engine/audio/wav.ts';
import type { SampleEncoding } from '../audio/encoders.ts';
import type { Rates } from '../audio/pcm.ts';
import { joinBytes } from '../audio/join-bytes.ts';
import type { AudioEncoder } from '../audio/pool.ts';
import { inBody } from '../http/errors.ts';
import type { SpeechStreamEvent } from './answer-schema.ts';
import type { SpeechCall, SpeechFormat } from './schema.ts';

/** Where an answer is written to: a server's response, or a page's. */
export interface Outlet {
  /** Sends status and headers, before the first byte; they include `content-length` if the length is known. */
  begin(headers: Readonly<Record<string, string>>): void;
  /** Writes bytes; resolves when back-pressure allows more. */
  write(bytes: Uint8Array): Promise<void>;
  end(last?: Uint8Array): void;
  /** Reports a failure after begin(). */
  fail(error: unknown): void;
  /** The methods for an answer of SSE events. */
  readonly events: {
    begin(headers: Readonly<Record<string, string>>): void;
    send(event: SpeechStreamEvent): Promise<void>;
    end(): void;
    fail(error: unknown): Promise<void>;
  };
}

/** Opens audio encoders. */
export interface Encoders {
  open(encoding: SampleEncoding, rates: Rates): Promise<AudioEncoder>;
}

/** Passes events through, and renames the field `text` of the engine's errors to `input` if the request was in the current form. */
export async function* nameField({ legacy }: SpeechCall, events: AsyncIterable<SpeechEvent>): AsyncGenerator<SpeechEvent> {
  try {
    yield* events;
  } catch (error) {
    throw inBody(error, (param) => (param === 'text' && !legacy ? 'input' : undefined));
  }
}

/** What is known when an answer begins. */
interface Start {
  readonly seed: number;
  /** Sample rate of the answer in Hz; `modelRate` is that of the model's output. */
  readonly sampleRate: number;
  readonly modelRate: number;
}

interface Usage {
  readonly inputTokens: number;
  readonly frames: number;
}

/** One way of delivering encoded audio to the client. */
interface Sender {
  /** Called with the first audio, so that an earlier failure is still a plain error response. */
  begin(start: Start): void | Promise<void>;
  send(bytes: Uint8Array): Promise<void>;
  /** Ends the answer. `head`, which has the total length, replaces the first bytes if they have not been sent yet. */
  end(usage: Usage, head?: Uint8Array): Promise<void>;
  /** Reports a failure after begin(). */
  fail(error: unknown): Promise<void>;
}

/** Encodes the events and writes them to the outlet. A failure before the first audio is thrown; a later one is reported through the outlet. */
export async function speak(events: AsyncIterable<SpeechEvent>, call: SpeechCall, codec: Encoders, outlet: Outlet): Promise<void> {
  const sender = SENDERS[call.delivery](outlet, call);
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
        if (!begun) await sender.begin(start);
        begun = true;
        await sender.send(bytes);
      } else {
        if (!begun) await sender.begin(start);
        begun = true;
        const last = await encoder?.finish();
        await sender.send(last?.bytes ?? new Uint8Array());
        await sender.end(event, last?.head);
      }
    }
  } catch (error) {
    if (!begun) throw error;
    await sender.fail(error);
  } finally {
    encoder?.discard();
  }
}

/** Content types by format. */
const TYPES: Readonly<Record<SpeechFormat, string>> = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
};
export const AUDIO_TYPES: readonly string[] = Object.values(TYPES);

/** Parameters of a format's content type. */
const PARAMETERS: Partial<Record<SpeechFormat, (sampleRate: number) => string>> = {
  opus: () => '; codecs=opus',
  pcm: (sampleRate) => `; rate=${sampleRate}`,
};

const headersOf = ({ format }: SpeechCall, { seed, sampleRate }: Start): Record<string, string> => ({
  'content-type': TYPES[format] + (PARAMETERS[format]?.(sampleRate) ?? ''),
  'content-disposition': `inline; filename="speech.${format}"`,
  'x-speech-seed': String(seed),
});

/** Most bytes that are buffered to send an exact content-length. */
const MAX_HELD_BYTES = 1 << 20;
/** Formats whose header contains the total length; they are buffered however long they are. */
const HELD: readonly SpeechFormat[] = ['wav', 'flac'];

/**
 * Sends one body with its exact length, since clients store it as a file, and strict readers refuse open-ended headers. A long body is sent in chunks instead if
 * its format has no length in its header.
 */
function wholeSender(outlet: Outlet, call: SpeechCall): Sender {
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
      chunked = chunkedSender(outlet, call);
      await chunked.begin(start);
      for (const chunk of chunks.splice(0)) await chunked.send(chunk);
    },
    end: async (usage, head) => {
      if (chunked) return chunked.end(usage);
      if (!start) return;
      if (call.format === 'wav') chunks.unshift(wavHeader(start.sampleRate, held));
      const body = joinBytes(chunks);
      if (head) body.set(head);
      outlet.begin({ ...headersOf(call, start), 'content-length': String(body.length) });
      outlet.end(body);
    },
    fail: (error) => (chunked ? chunked.fail(error) : Promise.reject(error)),
  };
}

/** Sends bytes as they are generated. */
function chunkedSender(outlet: Outlet, call: SpeechCall): Sender {
  return {
    begin: async (start) => {
      outlet.begin(headersOf(call, start));
      if (call.format === 'wav') await outlet.write(wavHeader(start.sampleRate));
    },
    send: (bytes) => outlet.write(bytes),
    end: async () => outlet.end(),
    fail: async (error) => outlet.fail(error),
  };
}

/** Sends audio as base64 in SSE events; a failure is an event too. */
function eventSender({ events }: Outlet, call: SpeechCall): Sender {
  const send = async (bytes: Uint8Array): Promise<void> => {
    if (bytes.length > 0) await events.send({ type: 'speech.audio.delta', audio: toBase64(bytes) });
  };
  let header: Uint8Array | undefined;
  return {
    begin: (start) => {
      events.begin({ 'x-speech-seed': String(start.seed) });
      if (call.format === 'wav') header = wavHeader(start.sampleRate);
    },
    send: async (bytes) => {
      await send(header ? joinBytes([header, bytes]) : bytes);
      header = undefined;
    },
    end: async ({ inputTokens, frames }) => {
      const usage = { input_tokens: inputTokens, output_tokens: frames, total_tokens: inputTokens + frames };
      await events.send({ type: 'speech.audio.done', usage });
      events.end();
    },
    fail: (error) => events.fail(error),
  };
}

/** Bytes per call of String.fromCharCode, whose arguments are limited by the stack. */
const BASE64_PIECE = 1 << 13;

function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += BASE64_PIECE) text += String.fromCharCode(...bytes.subarray(at, at + BASE64_PIECE));
  return btoa(text);
}

const SENDERS: Readonly<Record<SpeechCall['delivery'], (outlet: Outlet, call: SpeechCall) => Sender>> = {
  whole: wholeSender,
  chunked: chunkedSender,
  sse: eventSender,
};
