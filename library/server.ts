/** `parley/server`: the listeners' apps for use in other programs, mounted in an Express app or served as they are. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CodecPool } from '../server/audio/pool.ts';
import { createChatApp } from '../server/chat/routes.ts';
import { capacityOf } from '../server/fleet/load.ts';
import { Lifecycle } from '../server/lifecycle.ts';
import { createLineLog } from '../server/log.ts';
import { createSpeechApp } from '../server/speech/routes.ts';
import { createTranscriptionApp } from '../server/transcription/routes.ts';
import { MODEL_ALIASES } from './parley.ts';
import { start } from './start.ts';
import type { LoadOptions } from './types.ts';

export * from './errors.ts';
export type { LoadOptions, LoadProgress } from './types.ts';

/** A request handler for `app.use` and `http.createServer`. */
export type App = (request: IncomingMessage, response: ServerResponse, next?: (error?: unknown) => void) => void;

export interface AppsOptions extends LoadOptions {
  /** Bearer token that requests must have; absent = none. */
  readonly apiKey?: string;
  /** Origins whose pages may use the apps, in addition to this machine's; `*` = any. */
  readonly corsOrigins?: readonly string[];
  /** Host names that are accepted, in addition to IP addresses and names without a dot; `*` = any. */
  readonly allowedHosts?: readonly string[];
  /** Most bytes of an uploaded recording; default 25 MiB. */
  readonly maxUploadBytes?: number;
}

/** One app per task, with the routes of its listener (docs/api.md). */
export interface Apps {
  readonly chat?: App;
  readonly speech?: App;
  readonly transcription?: App;
  /** Ends running requests and releases the device. */
  close(): Promise<void>;
}

/** Loads models and makes their apps; rejects with APIError if one cannot be loaded. */
export async function loadApps(options: AppsOptions): Promise<Apps> {
  const { engine, config } = await start(options);
  const log = createLineLog(options.log);
  const codec = new CodecPool(undefined, { log });
  const lifecycle = new Lifecycle();
  const { apiKey, corsOrigins = [], allowedHosts = [], maxUploadBytes } = options;
  const common = {
    engine,
    lifecycle,
    modelOptional: true,
    capacity: capacityOf(config),
    origins: { corsOrigins, allowedHosts },
    log,
    vitals: () => engine,
    ...(apiKey !== undefined && { apiKey }),
  };
  const { chat, speech, transcription } = config;
  const named = (task: 'speech' | 'transcription') => ({ aliases: MODEL_ALIASES[task] });
  const upload = maxUploadBytes === undefined ? {} : { maxFileBytes: maxUploadBytes };
  return {
    ...(chat && { chat: createChatApp({ ...common, modelId: chat.id! }) as App }),
    ...(speech && { speech: createSpeechApp({ ...common, ...named('speech'), modelId: speech.id!, codec }) as App }),
    ...(transcription && {
      transcription: createTranscriptionApp({ ...common, ...named('transcription'), ...upload, modelId: transcription.id!, codec }) as App,
    }),
    close: async () => {
      // Running requests end with the reason, instead of the errors of the parts being closed.
      lifecycle.state = 'draining';
      lifecycle.abortAll();
      await Promise.all([engine.close(), codec.close()]);
    },
  };
}
