/** Resolves what a person writes to a folder or file on this machine. */
import { readFile, stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { modelName } from '../../engine/util/model-name.ts';
import { SourceError } from '../errors.ts';
import { parseRecipe, recipeOf } from '../recipe.ts';
import { recommendedModel } from '../recommended.ts';
import { parseSource, shortSource } from '../source.ts';
import type { Source } from '../source.ts';
import { pullContext } from './context.ts';
import type { PullContext, ResolveOptions, Resolved } from './context.ts';
import { resolveHub } from './pull-hub.ts';
import { resolveRecipe } from './pull-recipe.ts';
import { findRecommended, resolveRecommended } from './pull-recommended.ts';
import { homeFolder } from './settings.ts';

/** Finds a source's model, and fetches what is missing. An existing file or folder is taken first. Throws SourceError. */
export async function resolveSource(from: string | Source, options: ResolveOptions = {}): Promise<Resolved> {
  const here = typeof from === 'string' ? await findPath(from) : undefined;
  if (here && !here.isRecipe) return ofPath(here);
  const context = pullContext(options);
  try {
    if (here) return await resolveRecipeFile(here.path, context);
    return typeof from === 'string' ? await resolveText(from, context) : await resolveParsed(from, context);
  } catch (error) {
    if (context.signal.aborted)
      throw new SourceError('aborted', 'stopped; what came is kept, and the same command goes on', { cause: error });
    throw error;
  }
}

/** Finds a recommended model in the caches by its id; undefined if it would have to be fetched. Makes no requests. */
export async function findModel(id: string, options: ResolveOptions = {}): Promise<Resolved | undefined> {
  const model = recommendedModel(id);
  return model && findRecommended(model, pullContext(options));
}

async function resolveText(text: string, context: PullContext): Promise<Resolved> {
  const recommended = recommendedModel(text);
  if (recommended) return resolveRecommended(recommended, context);
  const source = parseSource(text);
  return resolveParsed(source, context).catch((error: unknown) => {
    // owner/name may have been meant as a folder.
    const isAmbiguous =
      source.kind === 'hub' &&
      text === source.id &&
      error instanceof SourceError &&
      ['missing', 'unreachable', 'offline'].includes(error.kind);
    throw isAmbiguous ? new SourceError(error.kind, `${error.message}; and no folder has this name here`, { cause: error }) : error;
  });
}

async function resolveParsed(source: Source, context: PullContext): Promise<Resolved> {
  switch (source.kind) {
    case 'hub':
      return resolveHub(source, context);
    case 'path': {
      const here = await findPath(source.path);
      if (!here) throw new SourceError('missing', `no such file or folder: ${source.path}${orRecommended(source.path)}`);
      return here.isRecipe ? resolveRecipeFile(here.path, context) : ofPath(here);
    }
    case 'package':
    case 'url':
      return resolveRecipe(recipeOf(source), shortSource(source), context);
  }
}

/** A bare word may have been meant as a recommended model's id. */
const orRecommended = (path: string): string =>
  /^[\w.-]+$/.test(path) ? "; nor is a model of this name recommended ('parley models --recommended' lists those)" : '';

const MAX_RECIPE_BYTES = 2 ** 20;

/** Reads a recipe's file and resolves it. */
async function resolveRecipeFile(path: string, context: PullContext): Promise<Resolved> {
  return resolveRecipe(parseRecipe(path, await readFile(path, 'utf8')), path, context);
}

interface FoundPath {
  readonly path: string;
  readonly size: number;
  readonly isRecipe: boolean;
}

/** Finds a file or folder by this path; ~ is the home folder, in case no shell has expanded it. */
async function findPath(text: string): Promise<FoundPath | undefined> {
  if (text.includes('\0')) return undefined;
  const path = resolve(text.replace(/^~(?=\/|$)/, () => homeFolder()));
  const found = await stat(path).catch(() => undefined);
  if (!found) return undefined;
  const size = found.isFile() ? found.size : 0;
  return { path, size, isRecipe: found.isFile() && path.endsWith('.json') && size <= MAX_RECIPE_BYTES };
}

const ofPath = ({ path, size }: FoundPath): Resolved => ({
  id: modelName(path),
  path,
  files: size > 0 ? [{ path: basename(path), size }] : [],
  fetched: 0,
});
