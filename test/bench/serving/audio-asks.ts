/** Audio requests of every kind, good and bad, for the audio soak. */
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createRng } from '../../../engine/util/rng.ts';
import type { Rng } from '../../../engine/util/rng.ts';
import { formBody } from '../../support/listeners.ts';
import type { FormParts } from '../../support/listeners.ts';

const FIXTURES = new URL('../../fixtures/', import.meta.url);
const FILES = new URL('audio-formats/', FIXTURES);
const FORM = { 'content-type': 'multipart/form-data; boundary=XX' };
const TEXTS = ['Yes.', 'Not now.', 'Your tea is ready.', 'One. Two. Three.'];
const SPEECH_FORMATS = ['mp3', 'wav', 'opus', 'aac', 'flac', 'pcm'];
const TRANSCRIPT_FORMATS = ['json', 'text', 'srt', 'vtt', 'verbose_json'];

/** A request and what it must be answered with. */
export interface AudioAsk {
  readonly kind: string;
  readonly listener: 'speech' | 'transcription';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly expect: 'good' | 'refused' | 'either';
  /** The client goes away: in the middle of the body, at once after it, or when the answer begins. */
  readonly leaves?: 'sending' | 'waiting' | 'receiving';
}

/** Requests by their number: every fourth is broken or goes away. */
export function audioAsks(): (index: number) => AudioAsk {
  const clips = readdirSync(fileURLToPath(FILES)).sort().map((name) => readFileSync(new URL(name, FILES))); // prettier-ignore
  return (index) => {
    const rng = createRng(index);
    const good = index % 2 === 0 ? speech(index, rng) : transcription(index, clips, rng);
    if (index % 8 !== 3 && index % 8 !== 0) return good;
    // Of eight requests two are broken or cut, one of each listener.
    return index % 16 < 8 ? broken(good, rng) : { ...good, kind: 'went away', leaves: (['sending', 'waiting', 'receiving'] as const)[rng.integer(3)]! };
  };
} // prettier-ignore

function speech(index: number, rng: Rng): AudioAsk {
  const body = {
    model: 'tts-1',
    input: TEXTS[rng.integer(TEXTS.length)],
    voice: ['oni', 'nona', 'alloy', 'nona(2)+oni(1)'][rng.integer(4)],
    response_format: SPEECH_FORMATS[(index / 2) % SPEECH_FORMATS.length],
    seed: index,
    ...[{}, { stream: true }, { stream_format: 'sse' }, { sample_rate: 16000 }, { speed: 1.5 }][rng.integer(5)],
  };
  return json('speech', body, 'good');
}

function json(kind: string, body: object, expect: AudioAsk['expect']): AudioAsk {
  const headers = { 'content-type': 'application/json' };
  return { kind, listener: 'speech', path: '/audio/speech', headers, body: Buffer.from(JSON.stringify(body)), expect };
}

function transcription(index: number, clips: readonly Buffer[], rng: Rng): AudioAsk {
  const format = TRANSCRIPT_FORMATS[rng.integer(TRANSCRIPT_FORMATS.length)]!;
  const more: FormParts = format === 'verbose_json' ? [['timestamp_granularities[]', 'word']] : format === 'json' ? [['stream', 'true']] : [];
  return form('transcription', [['model', 'whisper-1'], ['response_format', format], ...more, ['file', clips[index % clips.length]!]], 'good');
} // prettier-ignore

function form(kind: string, parts: FormParts, expect: AudioAsk['expect']): AudioAsk {
  return { kind, listener: 'transcription', path: '/audio/transcriptions', headers: FORM, body: formBody(parts), expect };
}

/** What is refused before, while or after it is decoded. */
function broken(good: AudioAsk, rng: Rng): AudioAsk {
  if (good.listener === 'speech') {
    const body = [{ voice: 'nobody' }, { speed: 9 }, { input: '...' }, { response_format: 'midi' }, { input: 5 }][rng.integer(5)]!;
    return json('broken', { model: 'tts-1', input: 'Yes.', voice: 'oni', ...body }, 'refused');
  }
  const noise = Buffer.from(Array.from({ length: 3000 }, () => rng.integer(256)));
  const cut = good.body.subarray(0, Math.floor(good.body.length * (0.2 + 0.7 * (rng.integer(1000) / 1000))));
  const parts: FormParts = [['model', 'whisper-1'], ['file', noise]];
  // A file of which the end is missing may be heard as far as it goes; its form is whole.
  const short = formBody([['model', 'whisper-1'], ['file', good.body.subarray(good.body.indexOf('\r\n\r\n', 150) + 4, 4000)]]);
  const choice = rng.integer(4);
  if (choice === 0) return form('broken', parts, 'refused');
  if (choice === 1) return { ...good, kind: 'broken', body: cut, expect: 'refused' };
  if (choice === 2) return { ...good, kind: 'broken', body: short, expect: 'either' };
  return form('broken', [['model', 'whisper-1'], ['temperature', 'hot'], ['file', noise]], 'refused');
} // prettier-ignore
