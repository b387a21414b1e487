/**
 * A model assembled from parts: files of packages and URLs, joined if a publisher had to split them, each with its hash. A recipe is a JSON file, so that one can
 * be written for any model; a single package or URL is a recipe of one file. Pure.
 */
import { modelName } from '../engine/util/model-name.ts';
import { SourceError } from './errors.ts';
import { compareNatural, pathProblem, quoteName } from './names.ts';
import { fileNameOf, parseSource, shortSource } from './source.ts';
import type { PackageSource, Source, UrlSource } from './source.ts';

export interface RecipeFile {
  /** Path below the model's folder. If it ends in /, a folder into which the files of one part's folder go. */
  readonly path: string;
  /** Parts, which are joined in this order. */
  readonly parts: readonly (PackageSource | UrlSource)[];
  /** SHA-256 of the joined file. */
  readonly sha256?: string;
}

export interface Recipe {
  /** The model's id, unless another is given. */
  readonly name: string;
  readonly files: readonly RecipeFile[];
}

const HEX64 = /^[0-9a-f]{64}$/i;

/** Parses a recipe's JSON; `where` is the beginning of error messages. Throws SourceError('syntax'). */
export function parseRecipe(where: string, text: string): Recipe {
  const refuse = (why: string): SourceError => new SourceError('syntax', `${where} is no recipe of a model: ${why}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refuse('it is not JSON');
  }
  const { name, files } = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
  if (typeof name !== 'string' || pathProblem(name) !== undefined) throw refuse('name must be the id of the model');
  if (!Array.isArray(files) || files.length === 0) throw refuse('files must be a list of files');
  const read = files.map((file: unknown, index) => readFile(file, (why) => refuse(`files[${index}]${why}`)));
  const names = read.map(({ path }) => path.toLowerCase());
  const twice = names.find((path, index) => !path.endsWith('/') && names.indexOf(path) !== index);
  if (twice !== undefined) throw refuse(`two files are named ${quoteName(twice)}`);
  return { name, files: read };
}

function readFile(value: unknown, refuse: (why: string) => SourceError): RecipeFile {
  const { path, parts, sha256 } = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
  if (typeof path !== 'string') throw refuse('.path must be a name');
  const problem = path === './' ? undefined : pathProblem(path.replace(/\/$/, ''));
  if (problem !== undefined) throw refuse(`.path ${quoteName(path)} ${problem}`);
  if (!Array.isArray(parts) || parts.length === 0) throw refuse('.parts must be a list of sources');
  if (sha256 !== undefined && (typeof sha256 !== 'string' || !HEX64.test(sha256))) throw refuse('.sha256 must be 64 hexadecimal digits');
  const sources = parts.map((part: unknown, index) => readPart(part, (why) => refuse(`.parts[${index}]: ${why}`)));
  if (path.endsWith('/')) {
    const folder = sources.length === 1 && sources[0]!.kind === 'package' && sources[0]!.path.endsWith('/');
    if (!folder) throw refuse(`: ${quoteName(path)} is a folder, so its one part must be a folder of a package`);
    if (sha256 !== undefined) throw refuse(': a folder has no SHA-256');
  } else if (sources.some((source) => source.kind === 'package' && source.path.endsWith('/')))
    throw refuse(': a folder of a package needs a path that ends in /');
  return { path, parts: sources, ...(typeof sha256 === 'string' && { sha256: sha256.toLowerCase() }) };
}

function readPart(value: unknown, refuse: (why: string) => SourceError): PackageSource | UrlSource {
  if (typeof value !== 'string') throw refuse('must be a source');
  const source: Source = parseSource(value);
  if (source.kind !== 'package' && source.kind !== 'url') throw refuse(`${quoteName(value)} is neither a package's file nor an address`);
  if (source.kind === 'package' && source.sha256 !== undefined && source.path.includes('*'))
    throw refuse('several files have no one SHA-256');
  return source;
}

/** Makes a recipe of a single package's file or folder, or of a URL. */
export function recipeOf(source: PackageSource | UrlSource): Recipe {
  const { sha256 } = source;
  if (source.kind === 'package' && source.path.endsWith('/')) return { name: folderName(source), files: [{ path: './', parts: [source] }] };
  const path = source.kind === 'url' ? fileNameOf(source.url)! : joinedName(source.path);
  return { name: modelName(path).replace(/\.[a-z]\w*$/i, ''), files: [{ path, parts: [source], ...(sha256 !== undefined && { sha256 }) }] };
}

/** A text that is equal for recipes of the same files. Hashes are not part of it: they say what the files must be, not where they are from. */
export function formatRecipe(recipe: Recipe): string {
  return JSON.stringify(recipe.files.map(({ path, parts }) => [path, parts.map(shortSource)]));
}

const folderName = ({ name, path }: PackageSource): string => path.split('/').at(-2) || name.replace(/^@.*\//, '');

/** Name of the joined file: model.bin.part* -> model.bin, part0*.bin -> .bin -> model.bin; a name without a * is unchanged. */
function joinedName(path: string): string {
  const last = path.split('/').at(-1)!;
  if (!path.includes('*')) return last;
  const name = last.replace(/[-._]?(part|chunk|split)?[-._]?\d*\*/gi, '');
  return name === '' || name.startsWith('.') ? 'model.bin' : name;
}

/** Names in an archive that a path stands for, in the order of joining: one file, a folder's files, or the parts that match a *. */
export function matchInside(path: string, names: readonly string[]): string[] {
  if (path.endsWith('/')) return names.filter((name) => name.startsWith(path)).sort(compareNatural);
  if (!path.includes('*')) return names.filter((name) => name === path);
  const pattern = path.split('*').map((text) => text.replace(/[^\w/]/g, '\\$&'));
  return names.filter((name) => new RegExp(`^${pattern.join('[^/]*')}$`).test(name)).sort(compareNatural);
}
