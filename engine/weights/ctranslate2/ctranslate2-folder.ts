/**
 * A Whisper as faster-whisper publishes it (model.bin, config.json, tokenizer.json or a vocabulary), as the Hugging Face folder it was made
 * from.
 */
import { EngineError } from '../../errors.ts';
import { readJsonFile, readTextFile } from '../../platform/json-file.ts';
import type { Platform } from '../../platform/platform.ts';
import { isObject } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import type { Checkpoint } from '../checkpoint.ts';
import { ComputedCheckpoint } from '../computed-checkpoint.ts';
import { MODEL_WEIGHTS } from '../model-folder.ts';
import type { ModelFolder } from '../model-folder.ts';
import type { ModelFormat, ModelPlace } from '../model-format.ts';
import { folderOf, virtualFolder } from '../virtual-folder.ts';
import { readModelBin } from './model-bin.ts';
import { parseVocabulary, tokenizerOf } from './vocabulary.ts';
import { whisperConfig, whisperGeneration, whisperPreprocessor } from './whisper-json.ts';
import { whisperTensors } from './whisper-tensors.ts';
import type { WhisperShape } from './whisper-tensors.ts';

const WEIGHTS = 'model.bin';
const TOKENIZER = 'tokenizer.json';
/** Most bytes of a vocabulary; one of 51,866 tokens takes 1.1 MB. */
const VOCABULARY_BYTES = 16 * 2 ** 20;
const PREPROCESSOR = 'preprocessor_config.json';

/** The format of folders with a model.bin, or of that file. */
export const CTRANSLATE2: ModelFormat = {
  recognises: ({ path, names, head }) =>
    names ? names.includes(WEIGHTS) && !names.includes(MODEL_WEIGHTS) : head.length > 0 && /(^|[\\/])model\.bin$/.test(path),
  open: openFolder,
};

async function openFolder(modelPlace: ModelPlace): Promise<ModelFolder> {
  const place = folderOf(modelPlace);
  const { platform, path } = place;
  const weights = platform.join(path, WEIGHTS);
  const { checkpoint, shape } = await openWhisper(platform, weights);
  await checkpoint.close();
  const read = (name: string): Promise<Json> => readJsonFile(platform, platform.join(path, name), { optional: true });
  let tokenizer: Promise<Json> | undefined;
  const tokenizerFile = (): Promise<Json> => (tokenizer ??= readTokenizer(platform, path));
  return virtualFolder(place, {
    format: 'CTranslate2',
    json: {
      'config.json': () => whisperConfig(shape),
      'generation_config.json': async () => whisperGeneration(shape, await read('config.json'), tokenIds(await tokenizerFile())),
      [PREPROCESSOR]: async () => ({ ...whisperPreprocessor(shape), ...(await read(PREPROCESSOR)) }),
      [TOKENIZER]: tokenizerFile,
    },
    weights: { [MODEL_WEIGHTS]: { path: weights, open: async () => (await openWhisper(platform, weights)).checkpoint } },
  });
}

async function openWhisper(platform: Platform, path: string): Promise<{ readonly checkpoint: Checkpoint; readonly shape: WhisperShape }> {
  const source = await platform.open(path);
  try {
    const { tensors, shape } = await whisperTensors(path, source, await readModelBin(path, source));
    return { checkpoint: new ComputedCheckpoint(path, tensors, [source]), shape };
  } catch (error) {
    await source.close();
    throw error;
  }
}

/**
 * The folder's tokenizer.json, or one derived from its vocabulary; faster-whisper uses the tokenizer of openai/whisper-tiny where there is
 * none.
 */
async function readTokenizer(platform: Platform, folder: string): Promise<Json> {
  const path = platform.join(folder, TOKENIZER);
  if (await platform.exists(path)) return readJsonFile(platform, path);
  for (const name of ['vocabulary.json', 'vocabulary.txt']) {
    const list = platform.join(folder, name);
    if (await platform.exists(list)) return tokenizerOf(list, parseVocabulary(list, await readTextFile(platform, list, VOCABULARY_BYTES)));
  }
  throw new EngineError('invalid_model', `file not found: ${path}, and neither vocabulary.json nor vocabulary.txt stands in its place`);
}

/** All token ids by name; other errors in the file are left to its readers. */
function tokenIds({ model, added_tokens: added }: Json): ReadonlyMap<string, number> {
  const vocabulary = isObject(model) && isObject(model['vocab']) ? Object.entries(model['vocab']) : [];
  const special = (Array.isArray(added) ? added : []).flatMap((token: unknown) => (isObject(token) ? [[String(token['content']), token['id']] as const] : [])); // prettier-ignore
  return new Map([...vocabulary, ...special].filter((pair): pair is [string, number] => Number.isInteger(pair[1])));
}
