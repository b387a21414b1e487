/** Audio in a page: decodes recordings with the engine's own WAV reader or the browser's decoders, and encodes speech as plain samples. */
import { Downmix } from '../engine/audio/downmix.ts';
import { Resampler } from '../engine/audio/resample.ts';
import { TRANSCRIPTION_RATE } from '../engine/audio/sample-source.ts';
import { concatenated } from '../engine/util/math.ts';
import { isWav, parseWav, wavToMono } from '../engine/audio/wav.ts';
import { EngineError } from '../engine/errors.ts';
import type { AudioEncoder } from '../server/audio/pool.ts';
import { createPcmEncoder } from '../server/audio/pcm.ts';
import { unsupportedValue } from '../server/http/errors.ts';
import type { Encoders } from '../server/speech/speak.ts';

/** Decodes a recording to mono samples at 16 kHz. Throws EngineError('invalid_audio') if it cannot be decoded. */
export async function decodeSound(bytes: Uint8Array<ArrayBuffer>): Promise<Float32Array> {
  if (isWav(bytes)) {
    const wav = parseWav(bytes);
    const resampler = new Resampler(wav.sampleRate, TRANSCRIPTION_RATE);
    return concatenated([resampler.push(wavToMono(wav)), resampler.flush()]);
  }
  if (typeof OfflineAudioContext === 'undefined')
    throw new EngineError('unsupported', 'a worker decodes WAV files only: decode others in the page', { param: 'samples' });
  const decoded = await new OfflineAudioContext(1, 1, TRANSCRIPTION_RATE).decodeAudioData(bytes.buffer).catch((cause: unknown) => {
    throw new EngineError('invalid_audio', 'this browser cannot read the file as sound', { cause });
  });
  const planes = Array.from({ length: decoded.numberOfChannels }, (_, channel) => decoded.getChannelData(channel));
  return new Downmix().pushPlanes(planes, 0, decoded.length);
}

/** Encoders of a page, which has plain samples (pcm, wav) only. */
export const TAB_ENCODERS: Encoders = {
  async open(encoding, rates): Promise<AudioEncoder> {
    if (encoding !== 'pcm') throw unsupportedValue('response_format', `a page makes speech as wav and pcm; ${encoding} is made in Node`);
    const encoder = createPcmEncoder(rates);
    return { push: async (samples) => encoder.encode(samples), finish: async () => ({ bytes: encoder.finish() }), discard: () => {} };
  },
};
