/** Any sound file as 16 kHz mono: WAV by the engine's own reader (any width and rate), the rest by the browser's decoders. */
import { resample } from '../../../engine/audio/resample.ts';
import { isWav, parseWav, wavToMono } from '../../../engine/audio/wav.ts';
import { CAPTURE_RATE } from './microphone.ts';

/** Throws an Error with a readable message for what is no sound. */
export async function decodeAudio(file: Blob): Promise<Float32Array> {
  const bytes = await file.arrayBuffer();
  const view = new Uint8Array(bytes);
  if (isWav(view)) {
    const wav = parseWav(view);
    return resample(wavToMono(wav), wav.sampleRate, CAPTURE_RATE);
  }
  const context = new OfflineAudioContext(1, 1, CAPTURE_RATE);
  try {
    const decoded = await context.decodeAudioData(bytes);
    return mixDown(decoded);
  } catch (error) {
    throw new Error('this browser cannot read the file as sound', { cause: error });
  }
}

function mixDown(buffer: AudioBuffer): Float32Array {
  const mono = new Float32Array(buffer.length);
  for (let channel = 0; channel < buffer.numberOfChannels; channel++) {
    const samples = buffer.getChannelData(channel);
    for (let i = 0; i < mono.length; i++) mono[i]! += samples[i]! / buffer.numberOfChannels;
  }
  return mono;
}
