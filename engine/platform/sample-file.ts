/** Samples that a caller left in a file. */
import type { SampleFile } from '../api.ts';
import { EngineError } from '../errors.ts';
import type { ByteSource, Platform } from './platform.ts';

/** A SampleSource (audio/sample-source.ts) of samples in a file, which is opened at the first reading. */
export function sampleFile(platform: Pick<Platform, 'open'>, { path, encoding, length }: SampleFile) {
  let opened: Promise<ByteSource> | undefined;
  return {
    length,
    /** Rejects with EngineError('internal'). */
    read: async (from: number, to: number): Promise<Float32Array> => {
      const [size, decode] = encoding === 's16' ? ([2, fromPcm16] as const) : ([4, fromFloat32] as const);
      try {
        const bytes = await (opened ??= platform.open(path));
        return decode(await bytes.read(from * size, (to - from) * size));
      } catch (cause) {
        throw new EngineError('internal', `the samples of the audio cannot be read: ${String(cause)}`, { cause });
      }
    },
    // One that could not be opened needs no closing.
    close: async (): Promise<void> => (await opened?.catch(() => undefined))?.close(),
  };
}

/** 16-bit samples are divided by a power of two, so f32 holds them exactly. */
function fromPcm16(bytes: Uint8Array): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const samples = new Float32Array(bytes.length >> 1);
  for (let i = 0; i < samples.length; i++) samples[i] = view.getInt16(2 * i, true) / 0x8000;
  return samples;
}

function fromFloat32(bytes: Uint8Array): Float32Array {
  const whole = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  return new Float32Array(whole.buffer, whole.byteOffset, whole.length / 4);
}
