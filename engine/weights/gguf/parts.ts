/** A model in one GGUF file, or in parts named NAME-00001-of-00003.gguf (llama.cpp's gguf-split); the first part has the metadata. */
import { EngineError } from '../../errors.ts';
import type { ByteSource, Platform } from '../../platform/platform.ts';
import { readHeader } from './header.ts';
import type { GgufHeader, GgufTensor } from './header.ts';
import { Metadata } from './metadata.ts';

/** A tensor and the part that it lies in. */
export interface PartTensor extends GgufTensor {
  readonly part: number;
}

/** The headers of all parts of a model. */
export interface GgufModel {
  readonly paths: readonly string[];
  /** Metadata of the first part. */
  readonly metadata: Metadata;
  /** Tensors by their names in GGUF. */
  readonly tensors: ReadonlyMap<string, PartTensor>;
}

/** Published models have up to 60 parts; each holds a file open. */
const MAX_PARTS = 512;

/** Reads the headers of a model's parts, given any of them; throws EngineError('invalid_model') with the file and what is wrong with it. */
export async function readModel(platform: Platform, path: string): Promise<GgufModel> {
  const paths = partsOf(path);
  const tensors = new Map<string, PartTensor>();
  let metadata: Metadata | undefined;
  for (const [part, file] of paths.entries()) {
    if (part > 0 && !(await platform.exists(file)))
      throw new EngineError('invalid_model', `${paths[0]} is in ${paths.length} parts, of which ${file} is missing`);
    const header = await withSource(platform, file, (source) => readHeader(file, source));
    checkPart(file, header, part, paths.length);
    metadata ??= new Metadata(file, header.metadata);
    for (const tensor of header.tensors) {
      if (tensors.has(tensor.name)) throw new EngineError('invalid_model', `${file}: tensor ${tensor.name} is in two parts`);
      tensors.set(tensor.name, { ...tensor, part });
    }
  }
  const count = metadata!.number('split.tensors.count') ?? tensors.size;
  if (count !== tensors.size) metadata!.refuse(`its parts should have ${count} tensors (split.tensors.count) and have ${tensors.size}`);
  return { paths, metadata: metadata!, tensors };
}

/** Files beside a model's that are no language models: image projectors, and statistics for quantisation. */
const NO_MODEL = /mmproj|imatrix/i;

/**
 * The GGUF file that a folder with these file names stands for: its only one, or the first part of its only split model, if it has no other
 * weights.
 */
export function loneGguf(names: readonly string[]): string | undefined {
  if (names.some((name) => /\.(safetensors|bin|onnx|pth|pt)$/i.test(name))) return undefined;
  const models = names.filter((name) => /\.gguf$/i.test(name) && !NO_MODEL.test(name)).sort();
  const [first, ...others] = models;
  return first !== undefined && others.every((name) => partsOf(first).includes(name)) ? first : undefined;
}

/** Opens a file, calls `use` with it, and closes it. */
export async function withSource<T>(platform: Platform, path: string, use: (source: ByteSource) => Promise<T>): Promise<T> {
  const source = await platform.open(path);
  try {
    return await use(source);
  } finally {
    await source.close();
  }
}

function partsOf(path: string): readonly string[] {
  const [, stem, no, of] = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/.exec(path) ?? [];
  const count = Number(of);
  if (stem === undefined || count < 2) return [path];
  if (Number(no) < 1 || Number(no) > count || count > MAX_PARTS) throw new EngineError('invalid_model', `${path} is part ${Number(no)} of ${count}; at most ${MAX_PARTS} parts are read`); // prettier-ignore
  return Array.from({ length: count }, (_, part) => `${stem}-${String(part + 1).padStart(5, '0')}-of-${of}.gguf`);
}

function checkPart(path: string, { metadata }: GgufHeader, part: number, count: number): void {
  const values = new Metadata(path, metadata);
  const [no, of] = [values.number('split.no') ?? 0, values.number('split.count') || 1];
  if (no === part && of === count) return;
  const name =
    count > 1
      ? `its name says part ${part + 1} of ${count}`
      : 'its name says so of no other part (parts are called NAME-00001-of-00002.gguf)';
  values.refuse(`it is part ${no + 1} of ${of} of a model, but ${name}`);
}
