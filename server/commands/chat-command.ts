/** What the commands have in common that load a chat model themselves: options, the engine, and how they end. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { ParseArgsConfig } from 'node:util';
import { EngineError, resolveConfig } from '../../engine/index.ts';
import type { EngineConfig } from '../../engine/index.ts';
import { ownCacheFolder, resolveSource } from '../../sources/node/index.ts';
import { superviseEngine } from '../engine/supervisor.ts';
import type { EngineSupervisor } from '../engine/supervisor.ts';
import { createLog } from '../log.ts';
import { inFlags } from '../settings/remedies.ts';
import { BUNDLED } from '../setup/layout.mjs';
import { pulling } from '../settings/pulling.ts';
import { recommendedSampling } from '../settings/sources.ts';

/** What was wrong with the command line. */
export class UsageError extends Error {}

/** What the same command would meet again. */
const REFUSALS: ReadonlySet<string> = new Set(['invalid_model', 'unsupported', 'invalid_request', 'context_length_exceeded', 'no_adapter']);

/** Runs a command with these options; exits with 2 for what the person must mend, 1 where the engine failed, each said in a line. */
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

/** The options and what else is on a command line; throws UsageError. */
export function parseCommand<const T extends Options>(argv: readonly string[], options: T) {
  // What looks like a number is one, below zero too, and no option: its range is what there is to say of it.
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

/** The number of an option; throws UsageError unless it is one from `least` to `most`. */
export function numberOption(name: string, given: string, least: number, most: number, whole = true): number {
  const value = Number(given);
  if (given.trim() !== '' && value >= least && value <= most && (!whole || Number.isSafeInteger(value))) return value;
  throw new UsageError(`--${name} ${given}: expected a${whole ? ' whole' : ''} number from ${least} to ${most}`);
}

/** Where a model stands: a folder or file as it is, here or among those that are bundled; whatever else names one is fetched first. */
export async function modelPath(model: string): Promise<string> {
  return pulling(async (options) => {
    const places = [model, ...(BUNDLED === undefined ? [] : [resolve(BUNDLED, model)])];
    const here = places.find((place) => existsSync(place));
    if (here !== undefined && !here.endsWith('.json')) return here;
    return (await resolveSource(model, options)).path;
  });
}

type ChatSettings = Pick<EngineConfig, 'contextLength' | 'maxRunningRequests'> & Partial<Pick<EngineConfig, 'numerics'>>;

/** The engine with a chat model, in a process of its own, as for the server: what drivers print, and a crash of one, stay there. */
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

/** The same with whatever models are named. */
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
