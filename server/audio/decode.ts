/** An uploaded file to what the transcriber hears: mono, 16 kHz. Runs in the codec worker. */
import { resample } from '../../engine/audio/resample.ts';
import { isWav, parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { HttpError, requestTooLarge } from '../http/errors.ts';

/** Hz of everything the transcription model hears. */
export const TRANSCRIPTION_RATE = 16_000;
/** A small file may hold hours; this bounds memory and work. */
export const MAX_AUDIO_SECONDS = 2 * 60 * 60;

/** First bytes of files people send, to say what they are; name and declared type are not looked at. */
const MAGICS: readonly (readonly [string, RegExp])[] = [
  ['FLAC', /^fLaC/],
  ['MP3', /^(ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb])/],
  ['Ogg', /^OggS/],
  ['MP4', /^[\s\S]{4}ftyp/],
  ['WebM', /^\x1aE\xdf\xa3/],
  ['AAC', /^\xff[\xf0\xf1\xf8\xf9]/],
  ['AIFF', /^FORM[\s\S]{4}AIF/],
  ['JPEG', /^\xff\xd8\xff/],
  ['PNG', /^\x89PNG/],
  ['PDF', /^%PDF/],
  ['ZIP', /^PK\x03\x04/],
];

export interface Decoded {
  /** Mono at TRANSCRIPTION_RATE. */
  readonly samples: Float32Array;
  /** What the caller should know of a file that was read all the same, in a sentence each. */
  readonly warnings: readonly string[];
}

/** Decodes by content; throws HttpError 400 `unsupported_audio`, `audio_too_short`, 413, or EngineError('invalid_audio'). */
export function decodeUpload(bytes: Uint8Array): Decoded {
  if (bytes.length === 0) throw refusal('audio_too_short', 'the file is empty');
  if (!isWav(bytes)) throw refusal('unsupported_audio', `the file must be WAV audio; this is ${nameOf(bytes)}`);
  const wav = parseWav(bytes);
  if (wav.frames === 0) throw refusal('audio_too_short', 'the file has no samples');
  const seconds = wav.frames / wav.sampleRate;
  if (seconds > MAX_AUDIO_SECONDS) {
    throw requestTooLarge(`the audio is ${Math.round(seconds)} seconds long; at most ${MAX_AUDIO_SECONDS} are transcribed`, 'file');
  }
  const present = wav.data.length;
  const cut = `the WAV file is cut short: ${present + wav.missingBytes} bytes of samples declared, ${present} present and transcribed`;
  return { samples: resample(wavToMono(wav), wav.sampleRate, TRANSCRIPTION_RATE), warnings: wav.missingBytes > 0 ? [cut] : [] };
}

/** Bytes of the samples that decodeUpload makes of a file, from its headers; 0 for what it will refuse. */
export function decodedBytes(bytes: Uint8Array): number {
  try {
    const { frames, sampleRate } = parseWav(bytes);
    const seconds = frames / sampleRate;
    return seconds > MAX_AUDIO_SECONDS ? 0 : Math.ceil(seconds * TRANSCRIPTION_RATE) * Float32Array.BYTES_PER_ELEMENT;
  } catch {
    // Why it cannot be read is said by the decoding.
    return 0;
  }
}

function nameOf(bytes: Uint8Array): string {
  const start = String.fromCharCode(...bytes.subarray(0, 16));
  const known = MAGICS.find(([, magic]) => magic.test(start));
  return known ? known[0] : 'no known audio format';
}

const refusal = (code: string, message: string): HttpError => new HttpError(400, code, message, { param: 'file' });
