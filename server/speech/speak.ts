/** Speech from the engine's events to the bytes of an answer, wherever they go: whole, as they are made, or in events. */
import type { SpeechEvent } from '../../engine/api.ts';
import { wavHeader } from '../../engine/audio/wav.ts';
import { EngineError, fromPlainError, toPlainError } from '../../engine/errors.ts';
import type { SampleEncoding } from '../audio/encoders.ts';
import type { Rates } from '../audio/pcm.ts';
import { joinBytes } from '../audio/join-bytes.ts';
import type { AudioEncoder } from '../audio/pool.ts';
import type { SpeechCall, SpeechFormat } from './schema.ts';

/** Where the bytes of an answer go. */
export interface Outlet {
  /** Status and headers, before any byte; with `content-length` where the length is known. */
  begin(headers: Readonly<Record<string, string>>): void;
  /** Resolves when more may come. */
  write(bytes: Uint8Array): Promise<void>;
  end(last?: Uint8Array): void;
  /** After begin(). */
  fail(error: unknown): void;
  /** The same for events in place of bytes. */
  readonly events: {
    begin(headers: Readonly<Record<string, string>>): void;
    send(event: object): Promise<void>;
    end(): void;
    fail(error: unknown): Promise<void>;
  };
}

/** What makes encoders. */
export interface Encoders {
  open(encoding: SampleEncoding, rates: Rates): Promise<AudioEncoder>;
}

/** The engine calls the text `text`, as the earlier form does; the current form calls it `input`. */
export async function* nameField({ legacy }: SpeechCall, events: AsyncIterable<SpeechEvent>): AsyncGenerator<SpeechEvent> {
  try {
    yield* events;
  } catch (error) {
    if (legacy || !(error instanceof EngineError) || error.param !== 'text') throw error;
    throw fromPlainError({ ...toPlainError(error), param: 'input' });
  }
}

/** What the answer begins with. */
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
  begin(start: Start): void | Promise<void>;
  send(bytes: Uint8Array): Promise<void>;
  /** `head` replaces the first bytes, if they have not left yet: it tells the length of the whole. */
  end(usage: Usage, head?: Uint8Array): Promise<void>;
  /** A failure after begin(). */
  fail(error: unknown): Promise<void>;
}

/** Runs the events through an encoder to the outlet. Throws what fails before the first sound; a later failure is told there. */
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

const MIME: Readonly<Record<SpeechFormat, (sampleRate: number) => string>> = {
  wav: () => 'audio/wav',
  mp3: () => 'audio/mpeg',
  opus: () => 'audio/ogg; codecs=opus',
  aac: () => 'audio/aac',
  flac: () => 'audio/flac',
  pcm: (sampleRate) => `audio/pcm; rate=${sampleRate}`,
};

const headersOf = ({ format }: SpeechCall, { seed, sampleRate }: Start): Record<string, string> => ({
  'content-type': MIME[format](sampleRate),
  'content-disposition': `inline; filename="speech.${format}"`,
  'x-speech-seed': String(seed),
});

/** Bytes that are held back for the sake of their number. */
const MAX_HELD_BYTES = 1 << 20;
/** Formats that begin with the length of the whole: they are held back however long they are. */
const HELD: readonly SpeechFormat[] = ['wav', 'flac'];

/**
 * One body with its exact length: clients store it as a file, and strict readers refuse open-ended headers. Where the format has none of its
 * own, a long body is sent as it is made, instead of being held.
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

/** Bytes as they are made. */
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

/** Base64 in events; a failure is an event too. */
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

/** Bytes that one call of String.fromCharCode takes. */
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
