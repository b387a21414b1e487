/** Reads Kokoro's weights from a kokoro-v1_0.pth, a dictionary of the five parts' state dictionaries. */
import { EngineError } from '../../errors.ts';
import type { ByteSource } from '../../platform/platform.ts';
import type { ComputedTensor } from '../computed-checkpoint.ts';
import { PickledTensor } from '../pytorch/pickle.ts';
import type { Pickled } from '../pytorch/pickle.ts';
import { isFloat, openTorchFile } from '../pytorch/torch-file.ts';

/** Depth of nested dictionaries: the parts, and their tensors. */
const MAX_DEPTH = 3;
/**
 * Most entries of all dictionaries; published weights have 700. A dictionary that is in several others, or in itself, is walked in each.
 */
const MAX_ENTRIES = 1 << 14;

/** The tensors under the names of the model's code. Position ids are left out, since they are counted here. */
export async function kokoroTorchTensors(path: string, source: ByteSource): Promise<ReadonlyMap<string, ComputedTensor>> {
  const file = await openTorchFile(path, source);
  const tensors = new Map<string, ComputedTensor>();
  for (const [name, described] of tensorsIn(path, file.root)) {
    if (isFloat(described)) tensors.set(name, await file.tensor(name, described));
  }
  return tensors;
}

/** Reads the only tensor of a voice's file. */
export async function voiceTensor(path: string, source: ByteSource): Promise<ComputedTensor> {
  const { root, tensor } = await openTorchFile(path, source);
  if (root instanceof PickledTensor) return tensor('', root);
  throw new EngineError('invalid_model', `${path} holds no tensor, which a voice is`);
}

/** The tensors of nested dictionaries, with their names. */
function tensorsIn(path: string, root: Pickled): (readonly [string, PickledTensor])[] {
  const found: (readonly [string, PickledTensor])[] = [];
  let entries = 0;
  const walk = (value: Pickled, prefix: string, depth: number): void => {
    if (++entries > MAX_ENTRIES) throw new EngineError('invalid_model', `${path} has dictionaries of more than ${MAX_ENTRIES} entries; no more are read`); // prettier-ignore
    if (value instanceof PickledTensor) found.push([prefix, value]);
    if (!(value instanceof Map) || depth >= MAX_DEPTH) return;
    for (const [key, inner] of value) {
      if (typeof key !== 'string') throw new EngineError('invalid_model', `${path} holds a tensor without a name`);
      walk(inner, prefix === '' ? key : `${prefix}.${plainName(key)}`, depth + 1);
    }
  };
  walk(root, '', 0);
  return found;
}

/**
 * Normalises names: the weights were trained in DataParallel, whose prefix stayed, and torch 2 has other names for the two halves of a
 * weight norm.
 */
function plainName(key: string): string {
  return key
    .replace(/^module\./, '')
    .replace(/\.parametrizations\.weight\.original0$/, '.weight_g')
    .replace(/\.parametrizations\.weight\.original1$/, '.weight_v');
}
