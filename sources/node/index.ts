/** The half of sources/ that needs Node: finding, fetching, listing and removing models. */
export { listCache, removeCached } from './cache.ts';
export type { CachedModel } from './cache.ts';
export type { ResolveOptions, Resolved } from './context.ts';
export { reportPull } from './report.ts';
export type { PullReport } from './report.ts';
export { findModel, resolveSource } from './resolve.ts';
export { ownCacheFolder, sourceSettings } from './settings.ts';
export type { SourceSettings } from './settings.ts';
