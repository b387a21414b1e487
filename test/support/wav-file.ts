/** Writes WAV files of every encoding the parser reads, for tests; built by hand so that it shares no code with engine/audio/wav.ts. */
import type { WavEncoding } from '../../engine/audio/wav.ts';

export interface WavFileOptions {
  readonly encoding: WavEncoding;
  readonly sampleRate: number;
  readonly channels?: number;
  readonly extensible?: boolean;
  /** What the data chunk declares; default: the truth. */
  readonly declaredSize?: number;
  /** Chunks before the data, e.g. LIST. */
  readonly extraChunks?: readonly { readonly id: string; readonly bytes: Uint8Array }[];
}

const BITS: Readonly<Record<WavEncoding, number>> = { u8: 8, s16: 16, s24: 24, s32: 32, f32: 32, f64: 64, alaw: 8, mulaw: 8 };
const TAGS: Readonly<Partial<Record<WavEncoding, number>>> = { f32: 3, f64: 3, alaw: 6, mulaw: 7 };

/** `samples` are interleaved, -1..1. */
export function wavFile(samples: ArrayLike<number>, options: WavFileOptions): Uint8Array<ArrayBuffer> {
  const { encoding, sampleRate, channels = 1, extensible = false } = options;
  const bytesPerSample = BITS[encoding] / 8;
  const tag = TAGS[encoding] ?? 1;
  const data = Buffer.alloc(samples.length * bytesPerSample);
  for (let i = 0; i < samples.length; i++) writeSample(data, i * bytesPerSample, encoding, samples[i]!);
  const format = Buffer.alloc(extensible ? 40 : 16);
  format.writeUInt16LE(extensible ? 0xfffe : tag, 0);
  format.writeUInt16LE(channels, 2);
  format.writeUInt32LE(sampleRate, 4);
  format.writeUInt32LE(sampleRate * channels * bytesPerSample, 8);
  format.writeUInt16LE(channels * bytesPerSample, 12);
  format.writeUInt16LE(BITS[encoding], 14);
  if (extensible) {
    format.writeUInt16LE(22, 16);
    format.writeUInt16LE(BITS[encoding], 18);
    format.writeUInt16LE(tag, 24);
    Buffer.from('000000001000800000aa00389b71', 'hex').copy(format, 26);
  }
  const chunks = [
    chunk('fmt ', format),
    ...(options.extraChunks ?? []).map(({ id, bytes }) => chunk(id, bytes)),
    chunk('data', data, options.declaredSize),
  ];
  const body = Buffer.concat([Buffer.from('WAVE'), ...chunks]);
  return new Uint8Array(Buffer.concat([Buffer.from('RIFF'), u32(body.length), body]));
}

/** A sine of the given frequency and length. */
export function tone(frequency: number, sampleRate: number, seconds: number, amplitude = 0.5): Float32Array {
  return Float32Array.from(
    { length: Math.round(sampleRate * seconds) },
    (_, i) => amplitude * Math.sin((2 * Math.PI * frequency * i) / sampleRate),
  );
}

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
};

const chunk = (id: string, bytes: Uint8Array, declared = bytes.length): Buffer =>
  Buffer.concat([Buffer.from(id), u32(declared), bytes, Buffer.alloc(bytes.length & 1)]);

function writeSample(data: Buffer, at: number, encoding: WavEncoding, value: number): void {
  if (encoding === 'u8') data.writeUInt8(Math.round(value * 127) + 128, at);
  else if (encoding === 's16') data.writeInt16LE(Math.round(value * 0x7fff), at);
  else if (encoding === 's24') data.writeIntLE(Math.round(value * 0x7f_ffff), at, 3);
  else if (encoding === 's32') data.writeInt32LE(Math.round(value * 0x7fff_ffff), at);
  else if (encoding === 'f32') data.writeFloatLE(value, at);
  else if (encoding === 'f64') data.writeDoubleLE(value, at);
  else data.writeUInt8(encoding === 'alaw' ? alaw(value) : mulaw(value), at);
}

/** G.711 by its table of segments: 13 bits of A-law, in which even bits are turned; 14 of mu-law, which is biased and turned whole. */
function alaw(value: number): number {
  const size = Math.min(4095, Math.floor(Math.abs(value) * 4096));
  const segment = Math.max(0, Math.floor(Math.log2(Math.max(1, size))) - 4);
  const step = Math.floor(size / 2 ** Math.max(1, segment)) & 15;
  return ((value >= 0 ? 0x80 : 0) | (segment << 4) | step) ^ 0x55;
}

function mulaw(value: number): number {
  const size = Math.min(8191, Math.floor(Math.abs(value) * 8192) + 33);
  const segment = Math.floor(Math.log2(size)) - 5;
  const step = Math.floor(size / 2 ** (segment + 1)) & 15;
  return ~((value < 0 ? 0x80 : 0) | (segment << 4) | step) & 0xff;
}
