/** `parley doctor`: finds what would stop or slow the server on this machine, and what to do about it. */
import { spawnSync } from 'node:child_process';
import { constants, existsSync } from 'node:fs';
import { access, statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { availableParallelism, totalmem } from 'node:os';
import { dirname } from 'node:path';
import { chatAdapters } from '../../engine/config.ts';
import { matchingAdapters, noSuchAdapter, parseAdapterChoice } from '../../engine/platform/adapter-choice.ts';
import { formatBytes } from '../../sources/index.ts';
import { sourceSettings } from '../../sources/node/index.ts';
import type { SourceSettings } from '../../sources/node/index.ts';
import { bind } from '../http/bind.ts';
import { parseServerConfig } from '../settings/config.ts';
import { SettingsError } from '../settings/read.ts';
import { adapterNames } from '../setup/adapters.ts';
import { probeAdapter } from '../setup/drivers.mjs';
import { ROOT } from '../setup/layout.mjs';
import { orExit, usage } from './models.ts';

/** A finding. `wrong` stops the server from starting as things are, `note` is worth knowing. */
export interface Finding {
  readonly what: string;
  readonly state: 'ok' | 'note' | 'wrong';
  readonly found: string;
  /** What to do, if anything. */
  readonly mend?: string;
}

/** Result of `probeAdapter`. */
interface Probed {
  readonly name?: string;
  readonly software?: boolean;
  readonly problem?: string;
}

const GIB = 2 ** 30;
/** Least free memory in bytes for the bundled models and their driver. */
const LEAST_MEMORY = 1.5 * GIB;
/** Least free disk space in bytes: the smallest models for real work take about 400 MB. */
const LEAST_DISK = 1 * GIB;
const REACH_MS = 5_000;

/** Prints all findings; exits with 1 if one of them would stop the server. */
export async function runDoctor(argv: readonly string[]): Promise<void> {
  if (argv.length > 0)
    return usage(
      argv,
      'Usage: parley doctor\n\nLooks at Node, adapter, memory, ports, disk and the sources of models, and says what mends what is wrong.',
    );
  await orExit(async () => {
    const { problems, ...chosen } = chosenBy(process.env);
    const findings = [...problems, ...(await examine(sourceSettings(process.env), chosen))];
    for (const line of describeFindings(findings)) process.stdout.write(`${line}\n`);
    process.exitCode = findings.some(({ state }) => state === 'wrong') ? 1 : 0;
  });
}

/** Checks all that can be checked without loading a model. */
export async function examine(settings: SourceSettings, { host, ports, adapters }: Chosen): Promise<readonly Finding[]> {
  const standard = adapter();
  const found = [
    {
      what: 'Node',
      state: 'ok',
      found: `${process.versions.node} on ${process.platform} ${process.arch}, ${availableParallelism()} processors`,
    } as const,
    standard,
    // If there is no adapter, none of the named ones can be there.
    ...(standard.state === 'wrong' || adapters.length === 0 ? [] : namedAdapters(adapters, await adapterNames())),
    memory(process.availableMemory(), Math.min(totalmem(), process.constrainedMemory() || Infinity)),
    ...(await Promise.all(ports.map(([flag, port]) => portFree(flag, port, host)))),
    await disk(settings),
    // The tools block this process, which must not count as waiting for an answer.
    await hub(settings),
    tool('npm', 'npm:'),
    tool('pip', 'pypi:'),
  ];
  return found;
}

/** Formats findings: one line each, with what to do below it. */
export function describeFindings(findings: readonly Finding[]): readonly string[] {
  const width = Math.max(...findings.map(({ what }) => what.length));
  return findings.flatMap(({ what, state, found, mend }) => [
    `${state.padEnd(5)}  ${what.padEnd(width)}  ${found}`,
    ...(mend === undefined ? [] : [`${' '.repeat(9 + width)}${mend}`]),
  ]);
}

function adapter(): Finding {
  const what = 'adapter';
  const { name, software, problem }: Probed = probeAdapter({});
  if (name === undefined) {
    const mend = "'npm start' fetches a software driver; 'parley adapters' shows what is seen";
    return { what, state: 'wrong', found: `no WebGPU adapter: ${problem}`, mend };
  }
  if (!software && !/llvmpipe|swiftshader|software|basic render/i.test(name)) return { what, state: 'ok', found: name };
  return {
    what,
    state: 'note',
    found: `${name}, in software: right, and many times slower than a GPU`,
    mend: "a GPU needs its vendor's Vulkan driver; 'parley adapters' shows what is seen",
  };
}

/** Checks that the adapters named by settings exist. */
export function namedAdapters(adapters: Chosen['adapters'], names: readonly string[]): readonly Finding[] {
  const listed = names.map((name) => ({ name }));
  return adapters.map(([called, wanted]) => {
    const { part, index = 0 } = parseAdapterChoice(wanted);
    const meant = matchingAdapters(listed, part)[index];
    if (meant) return { what: 'adapter', state: 'ok', found: `${called} means ${meant.name}` };
    const { message } = noSuchAdapter(wanted, listed);
    return { what: 'adapter', state: 'wrong', found: `${called}: ${message}`, mend: "'parley adapters' shows what names they have" };
  });
}

/** Checks the free memory; both numbers are bytes. */
export function memory(free: number, total: number): Finding {
  const found = `${formatBytes(free)} free of ${formatBytes(total)}`;
  if (free >= LEAST_MEMORY) return { what: 'memory', state: 'ok', found };
  return {
    what: 'memory',
    state: 'note',
    found,
    mend: '--speech-model none and --transcription-model none leave those two out; a smaller --mem-fraction-static plans fewer pages',
  };
}

/** Settings that a machine may be unable to satisfy. */
interface Chosen {
  /** Address of all listeners. */
  readonly host: string;
  /** Ports of the listeners, with the flags that change them. */
  readonly ports: readonly (readonly [flag: string, port: number])[];
  /** Names of adapters, with the settings that name them. */
  readonly adapters: readonly (readonly [called: string, name: string])[];
}

const ADAPTER_SETTINGS = ['adapters', 'chatAdapter', 'speechAdapter', 'transcriptionAdapter', 'adapter'] as const;

/** Listeners and adapters that the environment's settings choose, and problems of these settings. */
export function chosenBy(env: Readonly<Record<string, string | undefined>>): Chosen & { readonly problems: readonly Finding[] } {
  try {
    const { host, listeners, engine, called } = parseServerConfig([], env);
    const ports = listeners.map(({ task, port }) => [task === 'chat' ? '--port' : `--${task}-port`, port] as const);
    const used = listeners.flatMap(({ task }) => (task === 'chat' ? chatAdapters(engine) : [engine[`${task}Adapter`] ?? engine.adapter]));
    const named = [...new Set(used)].filter((name) => name !== undefined);
    const settingOf = (name: string) => ADAPTER_SETTINGS.find((key) => [engine[key]].flat().includes(name))!;
    return {
      host,
      // 0 means any free port.
      ports: ports.filter(([, port]) => port > 0),
      adapters: named.map((name) => [called(settingOf(name)), name]),
      problems: [],
    };
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    return { host: '0.0.0.0', ports: [], adapters: [], problems: [{ what: 'settings', state: 'wrong', found: error.message }] };
  }
}

/** Error codes for an address that this machine does not have, or a host name that it does not know. */
const NO_ADDRESS: readonly (string | undefined)[] = ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EAI_AGAIN', 'EINVAL', 'ENOTFOUND'];

async function portFree(flag: string, port: number, host: string): Promise<Finding> {
  const server = createServer();
  const problem = await bind(server, port, host).catch((error: NodeJS.ErrnoException) => error);
  server.close();
  const what = `port ${port}`;
  if (problem && NO_ADDRESS.includes(problem.code))
    return { what, state: 'wrong', found: `${host} is no address of this machine`, mend: '--host chooses another' };
  if (!problem) return { what, state: 'ok', found: 'free' };
  const found =
    problem.code === 'EADDRINUSE'
      ? 'taken by another program, perhaps a server of Parley that runs'
      : `cannot be listened on (${problem.code})`;
  return { what, state: 'wrong', found, mend: `${flag} chooses another` };
}

async function disk({ hubCache }: SourceSettings): Promise<Finding> {
  let folder = hubCache;
  while (!existsSync(folder)) folder = dirname(folder);
  const problem = await access(folder, constants.W_OK | constants.X_OK).catch((error: NodeJS.ErrnoException) => error);
  if (problem) {
    const found = `no model can be kept in ${hubCache}: ${folder} may not be written (${problem.code})`;
    return { what: 'disk', state: 'note', found, mend: 'HF_HOME and PARLEY_CACHE name folders that may' };
  }
  const { bavail, bsize } = await statfs(folder);
  const found = `${formatBytes(bavail * bsize)} free for models in ${hubCache}`;
  if (bavail * bsize >= LEAST_DISK) return { what: 'disk', state: 'ok', found };
  return { what: 'disk', state: 'note', found, mend: "HF_HOME and PARLEY_CACHE name folders of another disk; 'parley rm' removes models" };
}

async function hub({ endpoint, offline }: SourceSettings): Promise<Finding> {
  const what = 'hub';
  if (offline !== undefined) return { what, state: 'note', found: `not asked: ${offline} is set` };
  try {
    const { status } = await fetch(`${endpoint}/api/models?limit=1`, { signal: AbortSignal.timeout(REACH_MS) });
    if (status < 500) return { what, state: 'ok', found: `${endpoint} answers` };
    return { what, state: 'note', found: `${endpoint} answers ${status}`, mend: 'models that are in the cache load without it' };
  } catch {
    const mend = 'models of packages (pypi:, npm:) and of the cache load without it; HF_ENDPOINT names a mirror';
    return { what, state: 'note', found: `${endpoint} cannot be reached`, mend };
  }
}

function tool(name: string, prefix: string): Finding {
  const { status, stdout } = spawnSync(name, ['--version'], { cwd: ROOT, encoding: 'utf8', shell: process.platform === 'win32' });
  if (status === 0) return { what: name, state: 'ok', found: `${stdout.trim().split('\n').at(-1)}, for models named ${prefix}...` };
  return { what: name, state: 'note', found: `not found; models named ${prefix}... need it` };
}
