/** Decodes a WAV file, or several that were joined, piece by piece, so that the page does not block and the file need not fit into memory beside its samples. */
import { Downmix } from '../../../engine/audio/downmix.ts';
import { Resampler } from '../../../engine/audio/resample.ts';
import { PeakMeter } from '../audio/peaks.ts';
import { checkLength } from '../audio/limits.ts';
import { openWavBlobs, readFrames } from '../audio/wav-blob.ts';
import { messageOf } from '../util.ts';
import type { DecodeAnswer, DecodeMessage } from './decode-protocol.ts';

/** Bytes per read. */
const PIECE_BYTES = 4 << 20;

const tell = (answer: DecodeAnswer, transfer: Transferable[] = []): void => self.postMessage(answer, { transfer });

async function decode({ file, rate, maxSeconds }: DecodeMessage): Promise<void> {
  const wavs = await openWavBlobs(file);
  const lengths = wavs.map(({ frames, format }) => Math.round((frames * rate) / format.sampleRate));
  const length = lengths.reduce((sum, each) => sum + each, 0);
  checkLength(length / rate, maxSeconds);
  const samples = new Float32Array(length);
  const peaks = new PeakMeter();
  let made = 0;
  const add = (block: Float32Array): void => {
    samples.set(block, made);
    peaks.push(block);
    made += block.length;
    tell({ type: 'progress', done: made / Math.max(1, length) });
  };
  for (const wav of wavs) {
    const resampler = new Resampler(wav.format.sampleRate, rate);
    const mix = new Downmix();
    const step = Math.ceil(PIECE_BYTES / wav.frameBytes);
    for (let first = 0; first < wav.frames; first += step)
      add(resampler.push(await readFrames(wav, first, Math.min(wav.frames, first + step), mix)));
    add(resampler.flush());
  }
  const levels = peaks.levels();
  tell({ type: 'decoded', samples, levels }, [samples.buffer, levels.buffer]);
}

self.addEventListener('message', ({ data }: MessageEvent<DecodeMessage>) => {
  decode(data).catch((error: unknown) => tell({ type: 'failed', message: explain(error) }));
});

/** Describes an error. A RangeError means that the samples do not fit into memory: they are the only large allocation. */
function explain(error: unknown): string {
  if (error instanceof RangeError) return 'this browser has not enough memory for a recording of this length';
  return messageOf(error);
}
