/** The server process: starts engine and listeners, reports when they are ready, and drains them on a signal. */
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { ownCacheFolder } from '../sources/node/index.ts';
import type { Express } from 'express';
import type { EngineError, EngineErrorCode } from '../engine/errors.ts';
import { KeyRing, readKeys } from './access/keys.ts';
import { Renewal } from './access/renewal.ts';
import type { Renewable } from './access/renewal.ts';
import { readTls, validityProblem } from './access/tls.ts';
import type { TlsOptions } from './access/tls.ts';
import type { AppOptions } from './listener/context.ts';
import { describeMemoryPlan, describeStart } from './banner.ts';
import { createChatApp } from './chat/routes.ts';
import { outliveOutput, outliveReaders } from './closed-pipe.mjs';
import { CodecPool } from './audio/pool.ts';
import { removeAbandoned } from './audio/temporary-folder.ts';
import { parseServerConfig } from './settings/config.ts';
import type { ListenerSettings, ServerConfig } from './settings/config.ts';
import { superviseEngine } from './engine/supervisor.ts';
import type { EngineSupervisor } from './engine/supervisor.ts';
import { capacityOf } from './fleet/load.ts';
import { Lifecycle } from './lifecycle.ts';
import { listen } from './listener/listen.ts';
import type { Listener } from './listener/listen.ts';
import { createLog } from './log.ts';
import type { Logger } from './log.ts';
import { readText } from './settings/read-text.ts';
import { SettingsError, helpText } from './settings/read.ts';
import { inFlags } from './remedies.ts';
import { presetProblem } from './settings/preset.ts';
import { pulling } from './settings/pulling.ts';
import { SHOWN_SETTINGS } from './settings/shown.ts';
import { resolveModels } from './settings/sources.ts';
import { unknownVariables } from './settings/variables.ts';
import { connectionsWithin, openFilesLimit } from './setup/open-files.mjs';
import { createSpeechApp } from './speech/routes.ts';
import { createTranscriptionApp } from './transcription/routes.ts';
import { endWithStarter } from './started.ts';
import type { Tracer } from './trace/types.ts';
import { defined } from './body/validate.ts';

/** Exit codes; 0 = all requests were drained. */
const EXIT = { crash: 1, badConfiguration: 2, drainDeadline: 75, noAdapter: 78, interrupted: 130 };
/** Time to receive an upload, which may be slow or wait for memory: as long as OpenAI's clients wait for an answer. */
const UPLOAD_TIMEOUT_MS = 600_000;
/** Time after the drain deadline for writing errors to the requests that still run. */
const LAST_WORDS_MS = 1_000;
/** A second signal within this time is ignored, since a terminal and `npm start` may both pass on one Ctrl-C. */
const SAME_SIGNAL_MS = 500;

/** Runs the server until a signal or a fatal error, then ends the process. `engineEntry` replaces the entry of the engine process (for tests). */
export async function runServer(argv: readonly string[], env: NodeJS.ProcessEnv, engineEntry?: URL): Promise<void> {
  endWithStarter(env);
  const settings = settingsOrExit(argv, env);
  if (settings.help) {
    outliveReaders();
    return print(helpText());
  }
  outliveOutput();
  const config = await pulling(async (options) => {
    const problem = await presetProblem(settings, { ...options, env });
    if (problem) exitWith(problem.message, problem.isWithoutAdapter ? EXIT.noAdapter : EXIT.badConfiguration);
    return resolveModels(settings, { ...options, env }).catch((error: unknown) => {
      if (!(error instanceof SettingsError)) throw error;
      return exitWith(error.message, EXIT.badConfiguration);
    });
  });
  const started = performance.now();
  const log = createLog(config.logLevel);
  const unknown = unknownVariables(env);
  if (unknown !== undefined) log.warn(unknown);
  const tracer = await tracerOf(env, log);
  const parts = startParts(config, { log, tracer, engineEntry });
  const stop = stopper(config, log, parts);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.onSignal());
  if (config.tls) warnOfDates(config.tls.options, log);
  const renewed = renewables(config, parts, log);
  const renewal = new Renewal(renewed, log);
  process.on('SIGHUP', () => (renewed.length > 0 ? void renewal.now() : stop.onSignal()));
  try {
    await parts.listenAll();
  } catch (error) {
    process.stderr.write(`${describeListenError(error as NodeJS.ErrnoException)}\n`);
    return stop.now(EXIT.crash);
  }
  void renewal.watch();
  await parts.supervisor.ready;
  print(describeStart(config, parts.supervisor.info(), parts.ports(), (performance.now() - started) / 1000));
}

/** The key file and certificates, if configured, with how to reload them. */
function renewables({ keys, tls, called }: ServerConfig, parts: Parts, log: Logger): readonly Renewable[] {
  const files: Renewable[] = [];
  if (keys) files.push({ what: 'keys', paths: [keys.path], take: () => parts.keys?.replace(readKeys(keys.path, readText, called)) });
  if (!tls) return files;
  const take = (): void => {
    const renewed = readTls(tls.files, readText, called);
    warnOfDates(renewed, log);
    for (const listener of parts.listeners) listener.renewTls(renewed);
  };
  return [...files, { what: 'certificates', paths: Object.values(tls.files), take }];
}

/** Warns of a certificate that clients refuse. It is served all the same: the clock may be wrong, and the next file is taken without a start. */
function warnOfDates(tls: TlsOptions, log: Logger): void {
  const problem = validityProblem(tls);
  if (problem !== undefined) log.warn(problem);
}

const print = (text: string): void => void process.stdout.write(`${text}\n`);

function settingsOrExit(argv: readonly string[], env: NodeJS.ProcessEnv): ServerConfig {
  try {
    return parseServerConfig(argv, env);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    return exitWith(error.message, EXIT.badConfiguration);
  }
}

function exitWith(message: string, code: number): never {
  process.stderr.write(`${message}\n`);
  process.exit(code);
}

interface Parts {
  readonly supervisor: EngineSupervisor;
  readonly lifecycle: Lifecycle;
  readonly codec: CodecPool;
  readonly keys: KeyRing | undefined;
  readonly tracer: Tracer | undefined;
  readonly listeners: Listener[];
  listenAll(): Promise<void>;
  /** Bound ports, in the order of config.listeners. */
  ports(): readonly number[];
}

/** Exit codes of errors that another start would not mend, so that a service manager does not try again. */
const EXIT_BY_CODE: Partial<Record<EngineErrorCode, number>> = {
  no_adapter: EXIT.noAdapter, invalid_model: EXIT.badConfiguration, unsupported: EXIT.badConfiguration, out_of_memory: EXIT.badConfiguration,
}; // prettier-ignore

/** Exit code of a server whose engine cannot run. */
export function exitCodeOf({ code }: EngineError): number {
  return EXIT_BY_CODE[code] ?? EXIT.crash;
}

/** The tracer, if OTEL_EXPORTER_OTLP_ENDPOINT is set and OTEL_SDK_DISABLED is not true; its module is loaded only then. */
export async function tracerOf(env: NodeJS.ProcessEnv, log: Logger): Promise<Tracer | undefined> {
  if (!env['OTEL_EXPORTER_OTLP_ENDPOINT'] || /^true$/i.test(env['OTEL_SDK_DISABLED'] ?? '')) return undefined;
  return (await import('./trace/tracer.ts')).createTracer(env, log);
}

interface Outside {
  readonly log: Logger;
  readonly tracer: Tracer | undefined;
  readonly engineEntry: URL | undefined;
}

function startParts(config: ServerConfig, { log, tracer, engineEntry }: Outside): Parts {
  const lifecycle = new Lifecycle();
  removeAbandoned();
  const codec = new CodecPool(undefined, { log });
  const keys = config.keys && new KeyRing(config.keys.rows);
  const listeners: Listener[] = [];
  const supervisor = superviseEngine({
    start: { config: config.engine, toggles: config.toggles, cache: ownCacheFolder(process.env) },
    log,
    watchdogMs: config.watchdogMs,
    onPlan: (plan) => print(describeMemoryPlan(plan)),
    onGiveUp: (error) => {
      process.stderr.write(`the engine cannot run: ${inFlags(error)}\n`);
      process.exit(exitCodeOf(error));
    },
    ...(engineEntry && { entry: engineEntry }),
  });
  const maxConnections = connectionsWithin(openFilesLimit(), config.listeners.length);
  const listenOne = async (settings: ListenerSettings): Promise<Listener> => {
    const app = createListenerApp(settings, config, { supervisor, lifecycle, codec, keys, tracer, log });
    const timeout = settings.task === 'transcription' ? { requestTimeoutMs: UPLOAD_TIMEOUT_MS } : {};
    const own = defined({ tls: config.tls?.options, maxConnections });
    return listen(app, { host: config.host, port: settings.port, log, ...timeout, ...own });
  };
  return {
    supervisor,
    lifecycle,
    codec,
    keys,
    tracer,
    listeners,
    listenAll: async () => {
      for (const settings of config.listeners) listeners.push(await listenOne(settings));
    },
    ports: () => listeners.map(({ port }) => port),
  };
}

type Shared = Pick<Parts, 'supervisor' | 'lifecycle' | 'codec' | 'keys' | 'tracer'> & { readonly log: Logger };

function createListenerApp(
  settings: ListenerSettings,
  config: ServerConfig,
  { supervisor, lifecycle, codec, keys, tracer, log }: Shared,
): Express {
  const options: AppOptions = {
    engine: supervisor,
    modelId: settings.modelId,
    aliases: settings.aliases,
    ...(settings.task === 'chat' && { loras: config.engine.chat?.loras?.map(({ id }) => id) ?? [] }),
    modelOptional: config.modelOptional,
    ...defined({ apiKey: config.apiKey, adminKey: config.adminKey, keys, tracer }),
    origins: config.origins,
    log,
    lifecycle,
    vitals: () => supervisor,
    settings: config.shown,
    shownSettings: SHOWN_SETTINGS,
    capacity: capacityOf(config.engine),
    logRequests: config.logRequests,
  };
  if (settings.task === 'speech') {
    const { maxInputChars: maxInput, speechDefaultFormat: defaultFormat, legacySpeech: legacy, voiceAliases } = config;
    return createSpeechApp({ ...options, codec, maxInput, defaultFormat, legacy, voiceAliases });
  }
  if (settings.task === 'transcription') return createTranscriptionApp({ ...options, codec, maxFileBytes: config.maxUploadBytes });
  const playground = existsSync(config.staticFolder) ? { staticFolder: config.staticFolder } : {};
  return createChatApp({
    ...options,
    ...playground,
    reasoningField: config.reasoningField,
  });
}

interface Stopper {
  /** Drains and exits with 0 at the first signal; exits at once at the second. */
  onSignal(): void;
  now(code: number): Promise<void>;
}

function stopper(config: ServerConfig, log: Logger, parts: Parts): Stopper {
  let signalled: number | undefined;
  const now = async (code: number): Promise<void> => {
    for (const listener of parts.listeners) listener.destroy();
    await Promise.all([parts.supervisor.close(), parts.codec.close(), parts.tracer?.flush()]);
    process.exit(code);
  };
  return {
    now,
    onSignal: () => {
      if (signalled === undefined) {
        signalled = performance.now();
        void drain(config, log, parts).then(now);
      } else if (performance.now() - signalled > SAME_SIGNAL_MS) process.exit(EXIT.interrupted);
    },
  };
}

/** Fails readiness probes, then refuses new requests, then waits for the running ones until the deadline; returns the exit code. */
async function drain(config: ServerConfig, log: Logger, { lifecycle, listeners }: Parts): Promise<number> {
  lifecycle.state = 'leaving';
  log.info({ running: lifecycle.inFlight }, 'draining');
  await sleep(config.drainDelayMs);
  lifecycle.state = 'draining';
  const drained = Promise.all(listeners.map((listener) => listener.drain())).then(() => true);
  const deadline = new AbortController();
  const inTime = await Promise.race([drained, sleep(config.drainTimeoutMs, false, { signal: deadline.signal })]);
  deadline.abort();
  if (inTime) return 0;
  lifecycle.abortAll();
  await Promise.race([drained, sleep(LAST_WORDS_MS)]);
  return EXIT.drainDeadline;
}

function describeListenError(error: NodeJS.ErrnoException & { readonly port?: number; readonly address?: string }): string {
  const where = [error.address ?? '', ...(error.port === undefined ? [] : [error.port])].join(':');
  if (error.code === 'EADDRINUSE') return `${where} is in use; choose other ports with --port, --speech-port and --transcription-port`;
  if (error.code === 'EACCES') return `${where} needs more rights; choose a port above 1023`;
  return `cannot listen on ${where}: ${error.message}`;
}
