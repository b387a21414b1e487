/** Voices as they are published: one file each (.pt, .bin), or one archive (.npz; kokoro-onnx calls it voices-v1.0.bin). */
import { EngineError } from '../../errors.ts';
import type { Platform } from '../../platform/platform.ts';
import { product } from '../../util/math.ts';
import { finite } from '../checkpoint.ts';
import type { Checkpoint } from '../checkpoint.ts';
import { ComputedCheckpoint, wholeTensor } from '../computed-checkpoint.ts';
import type { ComputedTensor } from '../computed-checkpoint.ts';
import { readNpz } from '../npy.ts';
import { voiceTensor } from './torch-tensors.ts';

/** Where voices are: in an archive, or in a folder with a file each. */
export interface VoicePlace {
  readonly archive?: string;
  readonly folder?: string;
}

/** Files of voices. A voice's name is short and plain, because requests and listings have it. */
const VOICE_FILE = /^([\w-]{1,64})\.(pt|bin)$/;
/** Most bytes of a voice; one has 510 styles of 1 kB. */
const MAX_VOICE_BYTES = 4 * 2 ** 20;
const MAX_VOICES = 1024;

/** Finds the voices beside a model: voices/, voices*.npz or voices*.bin. */
export async function findVoices(platform: Platform, folder: string, names: readonly string[]): Promise<VoicePlace | undefined> {
  const archive = names.find((name) => /^voices[\w.-]*\.(npz|bin)$/.test(name));
  if (archive !== undefined) return { archive: platform.join(folder, archive) };
  const path = platform.join(folder, 'voices');
  const inside = names.includes('voices') ? ((await platform.list?.(path)) ?? []) : [];
  return inside.some((name) => VOICE_FILE.test(name)) ? { folder: path } : undefined;
}

/**
 * Opens the voices as the tensors of a voices.safetensors, [rows, `columns`] each; throws EngineError('invalid_model') that names the file.
 */
export async function openVoices(platform: Platform, { archive, folder = '' }: VoicePlace, columns: number): Promise<Checkpoint> {
  if (archive !== undefined) {
    const source = await platform.open(archive);
    try {
      return new ComputedCheckpoint(archive, await readNpz(archive, source), []);
    } finally {
      await source.close();
    }
  }
  const files = ((await platform.list?.(folder)) ?? []).filter((name) => VOICE_FILE.test(name)).sort();
  if (files.length > MAX_VOICES) throw new EngineError('invalid_model', `${folder} holds ${files.length} voices; at most ${MAX_VOICES} are read`); // prettier-ignore
  const voices = new Map<string, ComputedTensor>();
  for (const file of files) voices.set(VOICE_FILE.exec(file)![1]!, await readVoice(platform, platform.join(folder, file), columns));
  return new ComputedCheckpoint(folder, voices, []);
}

async function readVoice(platform: Platform, path: string, columns: number): Promise<ComputedTensor> {
  const source = await platform.open(path);
  try {
    if (source.size > MAX_VOICE_BYTES) throw new EngineError('invalid_model', `${path} has ${source.size} bytes; a voice has at most ${MAX_VOICE_BYTES}`); // prettier-ignore
    if (path.endsWith('.pt')) {
      const tensor = await voiceTensor(path, source);
      const values = finite(await tensor.read({ from: 0, to: product(tensor.shape) }), path, 'of the voice', 0);
      return wholeTensor(tensor.dtype, tensor.shape, () => Promise.resolve(values));
    }
    const row = 4 * columns;
    if (source.size === 0 || source.size % row !== 0) throw new EngineError('invalid_model', `${path} has ${source.size} bytes, expected rows of ${row} (${columns} numbers in f32)`); // prettier-ignore
    const { buffer, byteOffset } = await source.read(0, source.size);
    const values = finite(new Float32Array(buffer, byteOffset, source.size / 4), path, 'of the voice', 0);
    return wholeTensor('F32', [source.size / row, 1, columns], () => Promise.resolve(values));
  } finally {
    await source.close();
  }
}
