/** ListenerContext: what the routes of one listener share (engine, model, metrics, lifecycle), and `job`, the frame around a request that computes. */
import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import type { z } from 'zod';
import type { ModelInfo } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import { EngineError } from '../../engine/errors.ts';
import type { ModelTask } from '../../engine/model-types.ts';
import type { Engine } from '../../engine/protocol.ts';
import type { KeyRing } from '../access/keys.ts';
import type { KeyUse } from '../access/limits.ts';
import { Lifecycle } from '../lifecycle.ts';
import { createLog } from '../log.ts';
import type { Logger } from '../log.ts';
import { JSON_LIMITS, readJsonObject } from '../body/json-body.ts';
import { UnknownFields } from '../body/unknown-fields.ts';
import { UploadBudget } from '../body/upload-budget.ts';
import { describeBuild, fingerprint } from '../fingerprint.ts';
import { HttpError, checkModelName, deviceLost, modelLoading, shuttingDown, toHttpError } from '../http/errors.ts';
import type { Phase, RequestTimes, Tracer } from '../trace/types.ts';
import { capacityOf, loadOf } from '../fleet/load.ts';
import type { Capacity, Load } from '../fleet/load.ts';
import { ListenerMetrics } from './metrics.ts';
import type { OriginRules } from '../http/origin.ts';
import type { Route } from '../http/route.ts';

export interface AppOptions {
  readonly engine: Engine;
  /** Id under which this listener serves its model. */
  readonly modelId: string;
  /** Other names that requests may call the model. */
  readonly aliases?: readonly string[];
  /** Ids of the model's LoRA adapters, which requests may name in its place. */
  readonly loras?: readonly string[];
  /** Whether a request may omit `model`; default false. */
  readonly modelOptional?: boolean;
  readonly apiKey?: string;
  /** Named keys with rate limits (a key file), in addition to `apiKey`. */
  readonly keys?: KeyRing;
  /** Key of the admin routes; default: `apiKey`. */
  readonly adminKey?: string;
  readonly origins?: OriginRules;
  readonly log?: Logger;
  readonly lifecycle?: Lifecycle;
  readonly tracer?: Tracer;
  /** The supervisor's view of the engine process. */
  readonly vitals?: () => EngineVitals;
  /** Limits on concurrent and queued requests; default: those of the engine's default configuration. */
  readonly capacity?: Capacity;
  /** Effective settings for /server_info. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Schemas of those that there can be, for /openapi.json. */
  readonly shownSettings?: z.ZodRawShape;
  /** Log one line per request, whatever the level of `log`. */
  readonly logRequests?: boolean;
  /** Folder of the built playground, served at `/`. */
  readonly staticFolder?: string;
}

export interface EngineVitals {
  /** How often the engine has been restarted. */
  readonly restarts: number;
  /** How often it lost its GPU device. */
  readonly devicesLost: number;
  /** Milliseconds for which pending GPU work has made no progress. */
  readonly stalledMs: number;
}

/** GPU work that makes no progress for this long makes health probes fail; the watchdog's limit is far above it. */
const STALLED_MS = 20_000;

/** What the handler of a request that computes is given. */
export interface Job {
  /** Aborted when the client disconnects, the drain deadline passes, or an administrator aborts the request. */
  readonly signal: AbortSignal;
  /** Seconds since the job began. */
  elapsed(): number;
  /** Counts tokens against the rate limit of the request's key. */
  charge(tokens: number): void;
  /** Begins a phase of the request's trace, which ends the one before; no effect if it was entered already. */
  enter(phase: Phase): void;
  /** Adds fields to the request's log line; never content. */
  note(fields: Note): void;
  /**
   * Takes a failure after the answer has begun, which no error response can show any more: notes and logs it, and returns the error to show in the answer. For an aborted job
   * that is the abort's reason, which says more than the error that followed from it.
   */
  fail(error: unknown): HttpError;
}

export interface JobOptions {
  /** First phase of the trace; default `queue`. */
  readonly begins?: Phase;
}

export type JobHandler = (request: Request, response: Response, job: Job) => Promise<void>;

/** What the layers that a request passes leave for each other in Express's `response.locals`. */
interface RequestLocals {
  /** Limits of the key that the request came with; absent unless that key is one of a key file. */
  keyUse?: KeyUse;
  /** The route that answers the request, once its guards have let it through. */
  route?: Route;
  /** Start of the job and of each of its phases, in milliseconds of performance.now(). */
  traced?: Pick<RequestTimes, 'begun' | 'phases'>;
  /** Whether no route has the request's path. */
  unmatched?: boolean;
  /** Status of the error that the request ended with, which after the first byte is not the response's. */
  failure?: number;
  /** Fields of the request's log line and attributes of its trace; never content. */
  note?: Note;
}

type Note = Readonly<Record<string, string | number | boolean>>;

/** Typed access to `response.locals`. */
export const localsOf = (response: Response): RequestLocals => response.locals;

/** Adds fields to the request's log line. */
export function addNote(response: Response, fields: Note): void {
  const locals = localsOf(response);
  locals.note = { ...locals.note, ...fields };
}

/** Notes the error that a request ends with for its log line, counters and trace. A bug is logged, since the client is told no more than that there was one. */
export function noteFailure(log: Logger, response: Response, error: HttpError): void {
  const { status, code, cause = error } = error;
  localsOf(response).failure = status;
  addNote(response, { code });
  if (code !== 'internal_error' || response.destroyed) return;
  log.error({ id: response.get('x-request-id'), stack: cause instanceof Error ? cause.stack : String(cause) }, 'bug');
}

/** Shared state of one listener; every route's handler is made with it. */
export class ListenerContext {
  readonly task: ModelTask;
  readonly engine: Engine;
  readonly options: AppOptions;
  readonly capacity: Capacity;
  readonly metrics: ListenerMetrics;
  readonly lifecycle: Lifecycle;
  readonly log: Logger;
  /** Logger of request lines: `log`, or one that is not silenced by its level if `logRequests` is set. */
  readonly requestLog: Logger;
  /** Start of the listener in Unix seconds, which /v1/models shows as `created`. */
  readonly created = Math.floor(Date.now() / 1000);
  /** Memory budget of JSON bodies that are being received. */
  readonly #bodies = new UploadBudget(JSON_LIMITS);
  readonly #unknownFields: UnknownFields;
  /** Running jobs and their request ids. Clients may choose an id, so several jobs can have the same. */
  readonly #jobs = new Map<AbortController, string>();

  constructor(task: ModelTask, options: AppOptions) {
    this.task = task;
    this.engine = options.engine;
    this.options = options;
    this.capacity = options.capacity ?? capacityOf(resolveConfig({}));
    this.metrics = new ListenerMetrics({
      task,
      model: options.modelId,
      engine: options.engine,
      load: () => this.load(),
      restarts: () => options.vitals?.().restarts ?? 0,
      devicesLost: () => options.vitals?.().devicesLost ?? 0,
    });
    this.lifecycle = options.lifecycle ?? new Lifecycle();
    this.log = (options.log ?? createLog('silent')).child({ listener: task });
    this.#unknownFields = new UnknownFields(this.log);
    const isForced = options.logRequests === true && !this.log.isLevelEnabled('info');
    this.requestLog = isForced ? this.log.child({}, { level: 'info' }) : this.log;
  }

  /** The engine's description of this listener's model; undefined until it is loaded. */
  model(): ModelInfo | undefined {
    if (this.engine.status().state === 'loading') return undefined;
    return this.engine.info().models.find((model) => model.task === this.task);
  }

  /** Current load and capacity of this listener. */
  load(): Load {
    const { task, engine, capacity } = this;
    return loadOf({ task, status: engine.status(), model: this.model(), inFlight: this.metrics.inFlight, capacity });
  }

  /** `system_fingerprint`, which identifies model and adapter: while it is the same, equal requests with a seed get equal answers. */
  fingerprint(): string {
    const build = describeBuild(this.engine.info(), this.model());
    return fingerprint(createHash('sha256').update(build).digest('hex'));
  }

  /** Names that a request may give as `model`, and whether it may omit the field. */
  get names(): { readonly models: readonly string[]; readonly modelOptional: boolean } {
    const { modelId, aliases = [], loras = [], modelOptional = false } = this.options;
    return { models: [...new Set([modelId, ...aliases, ...loras])], modelOptional };
  }

  /** Throws HttpError 404 unless `name` is the served id, one of its aliases, or a LoRA adapter. */
  checkModel(name: string): void {
    checkModelName(name, this.names.models);
  }

  /** The LoRA adapter that a request's `model` names, as a field of the engine's request; nothing if it names the model itself. */
  loraOf(model: string | undefined): { readonly lora?: string } {
    return model !== undefined && this.options.loras?.includes(model) ? { lora: model } : {};
  }

  /** The 503 to answer with if this listener cannot take requests now; undefined if it can. */
  notReady(): HttpError | undefined {
    const { state } = this.engine.status();
    if (this.lifecycle.state !== 'serving' || state === 'closing') return shuttingDown();
    if (state === 'loading') return modelLoading();
    return state === 'lost' ? deviceLost() : undefined;
  }

  /** The 503 for health probes; unlike `notReady`, also while GPU work makes no progress, though requests may still succeed. */
  unhealthy(): HttpError | undefined {
    const isStalled = (this.options.vitals?.().stalledMs ?? 0) > STALLED_MS;
    return this.notReady() ?? (isStalled ? deviceLost('the GPU makes no progress') : undefined);
  }

  /** Reads a request's JSON object: see readJsonObject. */
  async readJson(request: Request, signal?: AbortSignal): Promise<Readonly<Record<string, unknown>>> {
    const body = await readJsonObject(request, this.#bodies, signal);
    this.noteFields(request, Object.keys(body));
    return body;
  }

  /** Takes the names of a body's fields, for the log to list those that the request's route does not know. */
  noteFields({ res }: Request, names: Iterable<string>): void {
    const { route } = localsOf(res!);
    if (route) this.#unknownFields.note(route, names);
  }

  /** Aborts the running jobs with this request id (undefined: all jobs) with `error`; returns their number. */
  abort(id: string | undefined, error: HttpError): number {
    const found = [...this.#jobs].filter(([, other]) => id === undefined || other === id);
    for (const [controller] of found) controller.abort(error);
    return found.length;
  }

  /**
   * Wraps the handler of a request that computes. The request is refused (503) while the engine is not ready and (429) beyond the limits of its key, it is aborted
   * when its client disconnects, and it is counted while it runs.
   */
  job(handler: JobHandler, { begins = 'queue' }: JobOptions = {}): (request: Request, response: Response) => Promise<void> {
    return async (request, response) => {
      const locals = localsOf(response);
      const started = performance.now();
      const phases = new Map<Phase, number>([[begins, started]]);
      // Set first, so that requests that are refused below are traced too.
      locals.traced = { begun: started, phases };
      // While `leaving`, requests are still accepted, although probes fail.
      const problem = this.lifecycle.state === 'leaving' ? undefined : this.notReady();
      if (problem) throw problem;
      const use = locals.keyUse;
      const leave = use?.enter();
      if (use) response.set(use.headers());
      const controller = new AbortController();
      const end = this.lifecycle.begin(controller);
      const onClose = (): void => controller.abort();
      response.on('close', onClose);
      this.#jobs.set(controller, String(response.get('x-request-id')));
      this.metrics.inFlight++;
      try {
        await handler(request, response, {
          signal: controller.signal,
          charge: (tokens) => use?.charge(tokens),
          enter: (phase) => void (phases.has(phase) || phases.set(phase, performance.now())),
          elapsed: () => (performance.now() - started) / 1000,
          note: (fields) => addNote(response, fields),
          fail: (error) => this.#fail(response, controller.signal.aborted ? controller.signal.reason : error),
        });
      } catch (error) {
        // The reason of the abort (drain deadline or /abort_request) says more than the engine's `aborted`.
        const { reason } = controller.signal;
        throw reason instanceof EngineError || reason instanceof HttpError ? reason : error;
      } finally {
        this.#jobs.delete(controller);
        this.metrics.inFlight--;
        end();
        leave?.();
      }
    };
  }

  #fail(response: Response, error: unknown): HttpError {
    const shown = toHttpError(error);
    noteFailure(this.log, response, shown);
    const { status, code, message } = shown;
    if (status >= 500 && code !== 'internal_error')
      this.log.warn({ id: response.get('x-request-id'), code, why: message }, 'an answer broke off');
    return shown;
  }
}
