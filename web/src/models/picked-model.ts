/** Models made of files that the person picked: a folder in any format that the engine reads, or a GGUF file. */
import type { ModelDescription } from '../../../engine/api.ts';
import { modelName } from '../../../engine/util/model-name.ts';
import { SourceError, chooseFiles, expectModel } from '../../../sources/index.ts';
import type { Choice } from '../../../sources/index.ts';
import type { PlacedModel } from '../worker/model-files.ts';
import { aboutOf } from './manifest.ts';
import type { ModelManifest } from './manifest.ts';

export interface PickedModel {
  readonly manifest: ModelManifest;
  /** The files that the model needs, by name. */
  readonly blobs: ReadonlyMap<string, Blob>;
}

type Describe = (model: PlacedModel, signal: AbortSignal) => Promise<ModelDescription>;

/** The files of an <input>, by path, which begins with the folder's name where a folder was picked. */
export const pickedFiles = (files: Iterable<File>): ReadonlyMap<string, File> =>
  new Map([...files].map((file) => [file.webkitRelativePath || file.name, file]));

/**
 * Describes the model in a picked folder; files that do not belong to it are left out. Throws SourceError or EngineError, each with one
 * sentence for people.
 */
export async function describeFolder(files: ReadonlyMap<string, File>, describe: Describe, signal: AbortSignal): Promise<PickedModel> {
  const folder = /^([^/]+)\//.exec([...files.keys()][0] ?? '')?.[1] ?? 'model';
  const blobs = new Map([...files].map(([path, file]) => [path.split('/').slice(1).join('/') || path, file]));
  // A prefix of its own, because the folder may be a copy of a bundled model.
  return describePicked(`local/${folder}`, blobs, undefined, describe, signal);
}

/** Describes a picked GGUF file, or the parts of one. */
export async function describeGguf(picked: ReadonlyMap<string, File>, describe: Describe, signal: AbortSignal): Promise<PickedModel> {
  const files = [...picked.values()];
  const [first] = files;
  if (!first) throw new SourceError('missing', 'no file was picked');
  const other = files.find(({ name }) => !/\.gguf$/i.test(name));
  if (other) throw new SourceError('missing', `${other.name} is no GGUF file; models of several files are opened as a folder`);
  const blobs = new Map(files.map((file) => [file.name, file]));
  const model = await describePicked(`local/${modelName(first.name)}`, blobs, first.name, describe, signal);
  if (model.blobs.size === files.length) return model;
  throw new SourceError(
    'missing',
    `${files.map(({ name }) => name).join(', ')}: open one model at a time, with all its parts if it is split`,
  );
}

async function describePicked(
  id: string,
  picked: ReadonlyMap<string, File>,
  select: string | undefined,
  describe: Describe,
  signal: AbortSignal,
): Promise<PickedModel> {
  const choice = choose(id, picked, select);
  expectModel(id.replace(/^local\//, ''), choice.format);
  const { format, main } = choice;
  const model = { id, ...(format === 'gguf' && main !== undefined && { main }) };
  const blobs = new Map(choice.files.map(({ path }) => [path, picked.get(path)!]));
  const placed = [...blobs].map(([name, blob]) => ({ name, size: blob.size, at: blob }));
  const description = await describe({ ...model, files: placed }, signal);
  const files = [...blobs].map(([name, { size }]) => ({ name, size, sha256: [] }));
  const { task, architecture: modelType } = description;
  return { manifest: { ...model, task, modelType, source: 'local', files, about: aboutOf(description) }, blobs };
}

function choose(id: string, picked: ReadonlyMap<string, File>, select: string | undefined): Choice {
  try {
    return chooseFiles(
      [...picked].map(([path, { size }]) => ({ path, size })),
      select,
    );
  } catch (error) {
    throw error instanceof SourceError
      ? new SourceError(error.kind, `${id.replace(/^local\//, '')} ${error.message}`, { cause: error })
      : error;
  }
}
