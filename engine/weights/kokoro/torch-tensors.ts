/** Kokoro's weights in a kokoro-v1_0.pth: a dictionary of the five parts' state dictionaries. */
import { EngineError } from '../../errors.ts';
import type { ByteSource } from '../../platform/platform.ts';
import type { ComputedTensor } from '../computed-checkpoint.ts';
import { PickledTensor } from '../pytorch/pickle.ts';
import type { Pickled } from '../pytorch/pickle.ts';
import { isFloat, openTorchFile } from '../pytorch/torch-file.ts';

/** Dictionaries within dictionaries: the parts, and their tensors. */
const MAX_DEPTH = 3;

/** The tensors by the names that the model's code gives them; ids of positions, which are counted here, are left out. */
export async function kokoroTorchTensors(path: string, source: ByteSource): Promise<ReadonlyMap<string, ComputedTensor>> {
  const file = await openTorchFile(path, source);
  const tensors = new Map<string, ComputedTensor>();
  for (const [name, described] of flatten(path, file.root, '', 0)) {
    if (isFloat(described)) tensors.set(name, await file.tensor(name, described));
  }
  return tensors;
}

/** The only tensor of a voice's file. */
export async function voiceTensor(path: string, source: ByteSource): Promise<ComputedTensor> {
  const { root, tensor } = await openTorchFile(path, source);
  if (root instanceof PickledTensor) return tensor('', root);
  throw new EngineError('invalid_model', `${path} holds no tensor, which a voice is`);
}

function* flatten(path: string, value: Pickled, prefix: string, depth: number): Generator<readonly [string, PickledTensor]> {
  if (value instanceof PickledTensor) yield [prefix, value];
  else if (value instanceof Map && depth < MAX_DEPTH) {
    for (const [key, inner] of value) {
      if (typeof key !== 'string') throw new EngineError('invalid_model', `${path} holds a tensor without a name`);
      yield* flatten(path, inner, prefix === '' ? key : `${prefix}.${plainName(key)}`, depth + 1);
    }
  }
}

/** Trained in DataParallel, whose prefix stayed; torch 2 calls the two halves of a weight norm otherwise. */
function plainName(key: string): string {
  return key
    .replace(/^module\./, '')
    .replace(/\.parametrizations\.weight\.original0$/, '.weight_g')
    .replace(/\.parametrizations\.weight\.original1$/, '.weight_v');
}
