/** Exports of the pure half of sources/ for the rest of the repository; the half that needs Node is node/index.ts. */
export { chooseFiles, chooseModel, expectModel } from './choose.ts';
export type { Choice, ModelFormat, RepoFile } from './choose.ts';
export { SourceError } from './errors.ts';
export type { SourceErrorKind } from './errors.ts';
export { fileRefusal, fileUrl, readFileUrl, readRepository } from './hub.ts';
export type { Hub, Repository, TokenWords } from './hub.ts';
export { isCommit, isToken } from './names.ts';
export { describeProgress, formatBytes, formatSeconds, Meter } from './progress.ts';
export type { PullProgress } from './progress.ts';
export { parseRecipe } from './recipe.ts';
export type { Recipe, RecipeFile } from './recipe.ts';
export {
  PRESETS,
  RECOMMENDED_MODELS,
  downloadBytes,
  presetBytes,
  presetModels,
  recommendedByName,
  recommendedModel,
} from './recommended.ts';
export type { AdapterBytes, Preset, RecommendedModel, RecommendedSource } from './recommended.ts';
export { fileNameOf, formatSource, isLoopback, parseSource } from './source.ts';
export type { HubSource, PackageSource, PathSource, Source, UrlSource } from './source.ts';
