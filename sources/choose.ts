/** Chooses the files of a published model that are needed: its weights once, in the requested format, and the small files beside them. Pure. */
import { describeForeignFolder } from '../engine/util/foreign-format.ts';
import { loneSafetensors } from '../engine/util/lone-safetensors.ts';
import { SourceError } from './errors.ts';
import { compareNatural, pathProblem, quoteName } from './names.ts';
import type { HubSource } from './source.ts';

/** A file of a repository, as its publisher lists it. */
export interface RepoFile {
  /** Path below the repository's root, with '/'. */
  readonly path: string;
  readonly size: number;
  /** SHA-256 of the content; only of files in large-file storage. */
  readonly sha256?: string;
  /** SHA-1 of the content as a git blob; only of other files. */
  readonly git?: string;
}

/** `lora` is an adapter that goes with a model, and no model. */
export type ModelFormat = 'safetensors' | 'gguf' | 'ctranslate2' | 'onnx' | 'pytorch' | 'lora';

export interface Choice {
  readonly format: ModelFormat;
  readonly files: readonly RepoFile[];
  /** The file that represents the model, if its folder does not: a GGUF file (the first of a split one), or the file that was asked for. */
  readonly main?: string;
}

/** A LoRA adapter as PEFT saves it. */
const LORA = ['adapter_config.json', 'adapter_model.safetensors'];

/** Small files in the repository's root that the reader of some format needs. */
const COMPANIONS =
  /^(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|vocabulary|preprocessor_config|processor_config|normalizer|chat_template|phoneme_rules|voices|quantize_config|quant_config)\.json$|^(merges|vocab|vocabulary)\.txt$|^chat_template\.jinja$/;
const VOICES = /^voices\/[^/]+\.(pt|bin|npz|safetensors|json)$|^voices[^/]*\.(bin|npz|safetensors)$/;
const SHARD = /^(.*)-(\d{5})-of-(\d{5})\.(safetensors|gguf)$/;
const LARGEST_COMPANION = 64 * 2 ** 20;
/** Quantisations in the order in which they are chosen by default: as llama.cpp and Ollama do, then what is nearest (`distance`). */
const PREFERRED = ['Q4_K_M', 'Q4_K_S', 'Q4_0', 'Q4_1', 'Q5_K_M', 'Q8_0', 'F16', 'BF16'];
/** Quantisations that the engine refuses, and that are therefore chosen only if there is nothing else. */
const NOT_READ = /(^|[-._/])Q[12]_0(?=[-./]|$)/i;
/** Bits of a quantisation in a file's name: the 3 of IQ3_XXS. */
const BITS = /(?:^|[-._/])(?:UD-)?(?:[IT]?Q|B?F|(?:MX|NV)FP)(\d+)(?:_\w+)?(?=[-./]|$)/i;

/** Chooses from a repository's files; throws SourceError('missing') with what there is instead. */
export function chooseFiles(files: readonly RepoFile[], select?: string): Choice {
  const chosen = select === undefined ? chooseWhole(files) : chooseNamed(files, select);
  const beside = chosen.format === 'gguf' || chosen.format === 'lora' ? [] : files.filter(isCompanion);
  const all = [...new Map([...chosen.files, ...beside].map((file) => [file.path, file])).values()];
  return { ...chosen, files: all.sort((a, b) => compareNatural(a.path, b.path)) };
}

/**
 * Chooses the files of a model of the hub, whose names must be safe as names of local files. `main` is set only if the model is that file and not its folder.
 * Throws a SourceError that names the model.
 */
export function chooseModel(source: HubSource, files: readonly RepoFile[]): Choice {
  let choice: Choice;
  try {
    choice = chooseFiles(files, source.select);
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    throw new SourceError(error.kind, `${source.id} ${error.message}`, { cause: error });
  }
  for (const { path } of choice.files) {
    const problem = pathProblem(path);
    if (problem !== undefined)
      throw new SourceError('refused', `${source.id} lists a file ${quoteName(path)}, whose name ${problem}; refused`);
  }
  const { format, main } = choice;
  const isFile = format === 'gguf' || (source.select !== undefined && !['safetensors', 'ctranslate2', 'lora'].includes(format));
  return { format, files: choice.files, ...(isFile && main !== undefined && { main }) };
}

/** Throws SourceError for an adapter where a model is wanted. */
export function expectModel(name: string, format: ModelFormat | undefined): void {
  if (format === 'lora')
    throw new SourceError(
      'missing',
      `${name} is a LoRA adapter and no model; it goes with its base model, on a server: --lora NAME=${name}`,
    );
}

const isCompanion = ({ path, size }: RepoFile): boolean => (COMPANIONS.test(path) && size <= LARGEST_COMPANION) || VOICES.test(path);
const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

function chooseWhole(files: readonly RepoFile[]): Choice {
  const names = new Set(files.map(({ path }) => path));
  const safetensors = safetensorsOf(files);
  if (safetensors.length > 0) return { format: 'safetensors', files: safetensors };
  const gguf = modelsOf(files, '.gguf');
  if (gguf.length > 0) return whole('gguf', files, preferred(gguf));
  const model = files.find(({ path }) => path === 'model.bin');
  if (model && (names.has('vocabulary.txt') || names.has('vocabulary.json') || names.has('tokenizer.json')))
    return { format: 'ctranslate2', files: [model] };
  // The full weights (the shortest name), not one of the smaller variants, which are requested by name.
  const onnx = modelsOf(files, '.onnx').sort((a, b) => baseName(a.path).length - baseName(b.path).length);
  const pytorch = modelsOf(files, '.pth');
  const hasVoices = files.some(({ path }) => VOICES.test(path));
  if (hasVoices && pytorch.length > 0) return { format: 'pytorch', files: pytorch.slice(0, 1) };
  if (hasVoices && onnx.length > 0) return { format: 'onnx', files: withData(files, onnx[0]!) };
  if (LORA.every((name) => names.has(name))) return { format: 'lora', files: files.filter(({ path }) => LORA.includes(path)) };
  throw new SourceError('missing', nothingToRead(files));
}

function nothingToRead(files: readonly RepoFile[]): string {
  const foreign = describeForeignFolder(files.map(({ path }) => path));
  return `has no weights that are read here${foreign === undefined ? '' : `; ${foreign}`}`;
}

/** model.safetensors or its shards, but not the same weights under another name, nor adapters for them. */
function safetensorsOf(files: readonly RepoFile[]): RepoFile[] {
  const top = files.filter(({ path }) => /^[^/]+\.safetensors$/.test(path) && !VOICES.test(path));
  const single = top.find(({ path }) => path === 'model.safetensors');
  if (single) return [single];
  const index = files.find(({ path }) => path === 'model.safetensors.index.json');
  const shards = top.filter(({ path }) => SHARD.exec(path)?.[1] === 'model');
  if (index && shards.length > 0) return [...complete(shards), index];
  const lone = loneSafetensors(top.map(({ path }) => path));
  return top.filter(({ path }) => path === lone);
}

/** Model files with this extension, without image projectors (mmproj-f16.gguf, m.mmproj-f16.gguf) and quantisation statistics; of a split file only the first. */
function modelsOf(files: readonly RepoFile[], ending: string): RepoFile[] {
  return files
    .filter(({ path }) => path.toLowerCase().endsWith(ending) && !/mmproj[^/]*$|(^|\/)(mmproj|imatrix)|imatrix\.gguf$/i.test(path))
    .filter(({ path }) => Number(SHARD.exec(path)?.[2] ?? 1) === 1)
    .sort((a, b) => compareNatural(a.path, b.path));
}

/** Whether the name of a file or its folder has this quantisation: model-Q4_K_M.gguf, Q4_K_M/model-00001-of-00002.gguf, model_q4.onnx. */
function hasTag(path: string, tag: string): boolean {
  const escaped = tag.replace(/[^\w]/g, '\\$&');
  return new RegExp(`(^|[-._/])${escaped}(?=[-./]|$)`, 'i').test(path);
}

function preferred(models: readonly RepoFile[]): RepoFile {
  for (const tag of PREFERRED) {
    const found = models.find(({ path }) => hasTag(path, tag));
    if (found) return found;
  }
  return [...models].sort((a, b) => distance(a.path) - distance(b.path))[0]!;
}

/** How far a quantisation is from the preferred ones: four bits come first, then more, then names that do not say, then fewer. */
function distance(path: string): number {
  const bits = Number(BITS.exec(path)?.[1]);
  if (NOT_READ.test(path)) return 1000;
  if (Number.isNaN(bits)) return 40;
  return bits >= 4 ? bits - 4 : 50 - bits;
}

function chooseNamed(files: readonly RepoFile[], select: string): Choice {
  const exact = files.find(({ path }) => path === select) ?? files.find(({ path }) => baseName(path) === select);
  if (exact) return whole(formatOf(exact.path), files, exact);
  const models = [...modelsOf(files, '.gguf'), ...modelsOf(files, '.onnx')];
  // The file's own name is searched before its folder's; UD-Q4_K_XL is found by its end, Q4_K_XL, too.
  const found = models.find(({ path }) => hasTag(baseName(path), select)) ?? models.find(({ path }) => hasTag(path, select));
  if (found) return whole(formatOf(found.path), files, found);
  const there = models.map(({ path }) => path);
  const some = there.slice(0, 24).join(', ') + (there.length > 24 ? ', …' : '');
  throw new SourceError(
    'missing',
    `has no file and no quantisation ${quoteName(select)}; there ${there.length === 0 ? 'is no GGUF or ONNX file' : `are ${some}`}`,
  );
}

function formatOf(path: string): ModelFormat {
  const ending = /\.(gguf|safetensors|onnx|pth|pt|bin)$/i.exec(path)?.[1]?.toLowerCase();
  if (ending === 'gguf' || ending === 'safetensors' || ending === 'onnx') return ending;
  if (ending === 'bin' && baseName(path) === 'model.bin') return 'ctranslate2';
  if (ending === 'pth' || ending === 'pt') return 'pytorch';
  throw new SourceError('missing', `${quoteName(path)} is no file of weights`);
}

/** All files that belong to one file of weights: the other parts of a split one, and the data of an ONNX graph. */
function whole(format: ModelFormat, files: readonly RepoFile[], first: RepoFile): Choice {
  const shard = SHARD.exec(first.path);
  if (format === 'onnx') return { format, files: withData(files, first), main: first.path };
  if (!shard) return { format, files: [first], main: first.path };
  const parts = complete(files.filter(({ path }) => SHARD.exec(path)?.[1] === shard[1] && SHARD.exec(path)?.[3] === shard[3]));
  // Only GGUF's parts name the model themselves.
  const index = format === 'gguf' ? [] : files.filter(({ path }) => path === `${shard[1]}.${format}.index.json`);
  return { format, files: [...parts, ...index], main: parts[0]!.path };
}

const withData = (files: readonly RepoFile[], graph: RepoFile): RepoFile[] => [
  graph,
  ...files.filter(({ path }) => path.startsWith(`${graph.path}_data`) || path === `${graph.path}.data`),
];

function complete(shards: readonly RepoFile[]): RepoFile[] {
  const sorted = [...shards].sort((a, b) => compareNatural(a.path, b.path));
  const [, stem = '', , count = '0'] = SHARD.exec(sorted[0]!.path)!;
  const lacking = Array.from({ length: Number(count) }, (_, i) => String(i + 1).padStart(5, '0')).find(
    (n) => !sorted.some(({ path }) => path.startsWith(`${stem}-${n}-of-${count}.`)),
  );
  if (lacking !== undefined) throw new SourceError('missing', `lacks part ${Number(lacking)} of ${Number(count)} of ${quoteName(stem)}`);
  return sorted;
}
