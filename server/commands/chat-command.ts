/** Shared parts of the commands that load a model themselves: options, the engine, and exit codes. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { ParseArgsConfig } from 'node:util';
import { EngineError, resolveConfig } from '../../engine/index.ts';
import type { EngineConfig } from '../../engine/index.ts';
import { expectModel } from '../../sources/index.ts';
import { ownCacheFolder, resolveSource } from '../../sources/node/index.ts';
import { superviseEngine } from '../engine/supervisor.ts';
import type { EngineSupervisor } from '../engine/supervisor.ts';
import { createLog } from '../log.ts';
import { inFlags } from '../remedies.ts';
import { BUNDLED } from '../setup/layout.mjs';
import { pulling } from '../settings/pulling.ts';
import { recommendedSampling } from '../settings/sources.ts';

/** An error in the command line. */
export class UsageError extends Error {}

/** Error codes that the same command would meet again. */
const REFUSALS: ReadonlySet<string> = new Set(['invalid_model', 'unsupported', 'invalid_request', 'context_length_exceeded', 'no_adapter']);

/** Runs a command with these options. On an error prints one line and exits, with 2 if the user must mend something, with 1 if the engine failed. */
export async function command(name: string, options: Options, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof EngineError)) throw error;
    process.stderr.write(
      `${error instanceof EngineError ? inFlags(error, Object.keys(options)) : `${error.message}; 'parley ${name} --help' lists what there is`}\n`,
    );
    process.exitCode = error instanceof EngineError && !REFUSALS.has(error.code) ? 1 : 2;
  }
}

type Options = NonNullable<ParseArgsConfig['options']>;

/** Parses options and positionals; throws UsageError. */
export function parseCommand<const T extends Options>(argv: readonly string[], options: T) {
  // A negative number is a value and not an option; its range is checked later.
  const args = argv.flatMap((argument, i) => {
    const before = argv[i - 1] ?? '';
    const takes = (name: string): boolean => options[name.replace(/^--/, '')]?.type === 'string';
    if (/^-[\d.]/.test(argument) && takes(before)) return [];
    const next = argv[i + 1] ?? '';
    return /^-[\d.]/.test(next) && takes(argument) ? [`${argument}=${next}`] : [argument];
  });
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw new UsageError((error as Error).message.split(/\.\s/)[0]);
  }
}

/** Parses the number of an option; throws UsageError unless it is within [least, most]. */
export function numberOption(name: string, given: string, least: number, most: number, whole = true): number {
  const value = Number(given);
  if (given.trim() !== '' && value >= least && value <= most && (!whole || Number.isSafeInteger(value))) return value;
  throw new UsageError(`--${name} ${given}: expected a${whole ? ' whole' : ''} number from ${least} to ${most}`);
}

/** Path of a model: that of an existing file or folder, here or among the bundled ones; any other source is fetched first. */
export async function modelPath(model: string): Promise<string> {
  // As a path it would be the folder of the bundled models' own.
  if (model.trim() === '') throw new UsageError('no model is named');
  return pulling(async (options) => {
    const places = [model, ...(BUNDLED === undefined ? [] : [resolve(BUNDLED, model)])];
    const here = places.find((place) => existsSync(place));
    if (here !== undefined && !here.endsWith('.json')) return here;
    const { path, format } = await resolveSource(model, options);
    expectModel(model, format);
    return path;
  });
}

type ChatSettings = Pick<EngineConfig, 'contextLength' | 'maxRunningRequests'> & Partial<Pick<EngineConfig, 'numerics'>>;

/** Starts the engine with a chat model in a child process, as the server does, so that output and crashes of drivers stay there. */
export async function startChat(
  model: string,
  path: string,
  settings: ChatSettings & { readonly adapter: string | undefined },
): Promise<EngineSupervisor> {
  const { adapter, ...limits } = settings;
  const sampling = recommendedSampling(model);
  const chat = { path, ...(sampling && { sampling }) };
  return startEngine({ chat, ...limits, ...(adapter !== undefined && { adapter }) });
}

/** Starts the engine in a child process with the models that the settings name. */
export async function startEngine(settings: Partial<EngineConfig>): Promise<EngineSupervisor> {
  const config = resolveConfig(settings);
  let giveUp = (_error: EngineError): void => {};
  const failed = new Promise<never>((_resolve, reject) => (giveUp = reject));
  const engine = superviseEngine({
    start: { config, toggles: 'default', cache: ownCacheFolder(process.env) },
    log: createLog('silent'),
    onGiveUp: (error) => giveUp(error),
  });
  try {
    await Promise.race([engine.ready, failed]);
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}
