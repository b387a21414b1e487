/** Models from elsewhere: a folder or a GGUF file of the person's, or a repository of the Hugging Face hub. */
import { modelTypeOf, taskOf, typesOf } from '../../../engine/model-types.ts';
import { describeForeignFolder, describeQuantization } from '../../../engine/util/foreign-format.ts';
import { parseJsonObject } from '../../../engine/util/json.ts';
import type { Json } from '../../../engine/util/json.ts';
import { modelName } from '../../../engine/util/model-name.ts';
import type { ManifestFile, ModelManifest } from './manifest.ts';

/** What a checkpoint consists of; other files of a folder are left where they are. */
const WANTED = /\.(json|safetensors|txt|jinja|model)$/;

/** What a config.json says the model is; throws a readable Error for types the engine has no definition of. */
export function describeType(config: Json): Pick<ModelManifest, 'task' | 'modelType'> {
  const modelType = modelTypeOf(config);
  const task = taskOf(modelType);
  if (modelType !== undefined && task !== undefined) return { task, modelType };
  throw new Error(`config.json says model_type ${modelType ?? '(nothing)'}; known are ${typesOf().join(', ')}`);
}

/** A model of files that the person picked. */
export interface PickedModel {
  readonly manifest: ModelManifest;
  readonly blobs: ReadonlyMap<string, Blob>;
}

/** Describes a GGUF file, or the parts of one. What is in it is the engine's to read, when it is loaded. Throws a readable Error for other files. */
export async function describeGguf(picked: readonly File[]): Promise<PickedModel> {
  const files = [...picked].sort((a, b) => (a.name < b.name ? -1 : 1));
  const [first] = files;
  if (!first) throw new Error('no file was picked');
  for (const file of files) {
    const magic = new TextDecoder().decode(await file.slice(0, 4).arrayBuffer());
    if (!GGUF.test(file.name) || magic !== 'GGUF') throw new Error(`${file.name} is no GGUF file`);
  }
  const parts = Number(/-of-(\d{5})\.gguf$/i.exec(first.name)?.[1] ?? 1);
  const others = files.filter(({ name }) => modelName(name) !== modelName(first.name));
  if (others.length > 0 || files.length !== parts) {
    throw new Error(
      `${files.map(({ name }) => name).join(', ')}: open one model, ${parts > 1 ? `all its ${parts} parts` : 'which is one file'}`,
    );
  }
  const described: ManifestFile[] = files.map(({ name, size }) => ({ name, size, sha256: [] }));
  const manifest: ModelManifest = {
    id: `local/${modelName(first.name)}`,
    task: 'chat',
    modelType: 'GGUF',
    source: 'local',
    files: described,
  };
  return { manifest, blobs: new Map(files.map((file) => [file.name, file])) };
}

const GGUF = /\.gguf$/i;

/** Describes the files of a picked folder. Throws a readable Error when it is no checkpoint. */
export async function describeFolder(files: readonly File[]): Promise<PickedModel> {
  const own = files.filter((file) => file.webkitRelativePath.split('/').length <= 2 && WANTED.test(file.name));
  const config = own.find((file) => file.name === 'config.json');
  const foreign = describeForeignFolder(files.map(({ name }) => name));
  if (!config) throw new Error(foreign ?? 'this folder has no config.json, so it is no checkpoint');
  if (!own.some((file) => file.name.endsWith('.safetensors'))) throw new Error(foreign ?? 'this folder has no .safetensors file');
  const json = parseJsonObject('config.json', new Uint8Array(await config.arrayBuffer()));
  const quantized = describeQuantization(json);
  if (quantized !== undefined) throw new Error(quantized);
  // Named apart from the build's own models, a copy of which this may be.
  const id = `local/${config.webkitRelativePath.split('/')[0] || 'model'}`;
  const described: ManifestFile[] = own.map((file) => ({ name: file.name, size: file.size, sha256: [] }));
  const manifest: ModelManifest = { id, ...describeType(json), source: 'local', files: described };
  return { manifest, blobs: new Map(own.map((file) => [file.name, file])) };
}

interface TreeEntry {
  readonly type: string;
  readonly path: string;
  readonly size: number;
  /** Git's name of the content. */
  readonly oid: string;
  /** Present for large files, whose content git does not hold. */
  readonly lfs?: { readonly oid: string };
}

/** Describes a hub repository such as `openai/whisper-tiny` as it is now: files of one commit, with their published hashes. Throws a readable Error. */
export async function describeHubModel(id: string, hub: string): Promise<ModelManifest> {
  if (!/^[\w.-]+\/[\w.-]+$/.test(id)) throw new Error('a hub id looks like owner/name');
  const base = hub.replace(/\/+$/, '');
  const { sha } = (await askHub(`${base}/api/models/${id}`, id)) as { readonly sha: string };
  const tree = (await askHub(`${base}/api/models/${id}/tree/${sha}`, id)) as readonly TreeEntry[];
  const url = (name: string): string => `${base}/${id}/resolve/${sha}/${encodeURIComponent(name)}`;
  const wanted = tree.filter(({ type, path }) => type === 'file' && WANTED.test(path));
  if (!wanted.some(({ path }) => path.endsWith('.safetensors'))) {
    const foreign = describeForeignFolder(tree.map(({ path }) => path));
    throw new Error(`${id} has no .safetensors files${foreign === undefined ? '' : `; ${foreign}`}`);
  }
  const config = (await askHub(url('config.json'), id)) as Json;
  const quantized = describeQuantization(config);
  if (quantized !== undefined) throw new Error(`${id}: ${quantized}`);
  const files = wanted.map(({ path, size, oid, lfs }): ManifestFile => ({
    name: path,
    size,
    url: url(path),
    sha256: [],
    published: lfs ? { kind: 'sha256', hex: lfs.oid } : { kind: 'git', hex: oid },
  }));
  return { id, ...describeType(config), source: 'hub', files };
}

async function askHub(url: string, id: string): Promise<unknown> {
  const answer = await fetch(url).catch(() => undefined);
  if (!answer) throw new Error('the hub cannot be reached from here');
  if (answer.ok) return answer.json();
  // The hub answers 401 for what does not exist, 403 for what wants an agreement first.
  const isClosed = [401, 403, 404].includes(answer.status);
  throw new Error(isClosed ? `the hub has no open model ${id}` : `the hub answered HTTP ${answer.status}`);
}
