/** What the routes of a listener share: its engine, model, metrics and life, and the frame around a request that computes. */
import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import type { ModelInfo } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import { EngineError } from '../../engine/errors.ts';
import type { ModelTask } from '../../engine/model-types.ts';
import type { Engine } from '../../engine/protocol.ts';
import type { KeyRing } from '../access/keys.ts';
import { KeyUse } from '../access/limits.ts';
import { Lifecycle } from '../lifecycle.ts';
import { createLog } from '../log.ts';
import type { Logger } from '../log.ts';
import { JSON_LIMITS } from '../body/json-body.ts';
import { UploadBudget } from '../body/upload-budget.ts';
import { describeBuild, fingerprint } from '../chat/answer.ts';
import { HttpError, checkModelName, deviceLost, modelLoading, shuttingDown } from './errors.ts';
import type { Phase, Tracer } from '../trace/types.ts';
import { capacityOf, loadOf } from '../fleet/load.ts';
import type { Capacity, Load } from '../fleet/load.ts';
import { ListenerMetrics } from './metrics.ts';
import type { OriginRules } from './origin.ts';

export interface AppOptions {
  readonly engine: Engine;
  /** Served id of this listener's model. */
  readonly modelId: string;
  /** Other names it answers to. */
  readonly aliases?: readonly string[];
  /** Whether a request may leave `model` out. */
  readonly modelOptional?: boolean;
  readonly apiKey?: string;
  /** Keys with names and limits, besides apiKey. */
  readonly keys?: KeyRing;
  /** Key of the admin routes instead of apiKey. */
  readonly adminKey?: string;
  readonly origins?: OriginRules;
  readonly log?: Logger;
  readonly lifecycle?: Lifecycle;
  readonly tracer?: Tracer;
  /** What is known of the engine besides its status: how often it was started again, and how long its GPU work has stood still. */
  readonly vitals?: () => EngineVitals;
  /** What the settings let it take at once; default: what the engine's own defaults do. */
  readonly capacity?: Capacity;
  /** Effective settings for /server_info. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** One line a request, whatever the log's level. */
  readonly logRequests?: boolean;
  /** Folder of the built playground, served on `/`. */
  readonly staticFolder?: string;
}

export interface EngineVitals {
  readonly restarts: number;
  readonly stalledMs: number;
}

/** GPU work that has not moved for this long makes the listener unready; the watchdog's limit is far above it. */
const STALLED_MS = 20_000;

/** What a handler of a computing request works with. */
export interface Job {
  /** Aborted when the client goes away or the drain deadline passes. */
  readonly signal: AbortSignal;
  /** Seconds since the request arrived. */
  elapsed(): number;
  /** Counts tokens against the limit of the request's key. */
  charge(tokens: number): void;
  /** What begins now and ends what was before it, for traces; a phase that was entered already goes on. */
  enter(phase: Phase): void;
  /** Adds counts to the request's log line; never content. */
  note(fields: Readonly<Record<string, string | number | boolean>>): void;
}

/** How a request is framed. */
export interface JobOptions {
  readonly isGeneration?: boolean;
  readonly begins?: Phase;
}

export type JobHandler = (request: Request, response: Response, job: Job) => Promise<void>;

/** Whose key a request came with, as the check of keys found it; undefined = nobody's in particular. */
function keyUseOf(response: Response): KeyUse | undefined {
  const use: unknown = response.locals['keyUse'];
  return use instanceof KeyUse ? use : undefined;
}

/** The shared parts, handed to the function that adds a listener's own routes. */
export class ListenerContext {
  readonly task: ModelTask;
  readonly engine: Engine;
  readonly options: AppOptions;
  readonly capacity: Capacity;
  readonly metrics: ListenerMetrics;
  readonly lifecycle: Lifecycle;
  readonly log: Logger;
  /** Takes the line of a request, whatever the level of `log`. */
  readonly requestLog: Logger;
  /** Unix seconds; `created` of the model. */
  readonly created = Math.floor(Date.now() / 1000);
  /** Long JSON bodies, while they come. */
  readonly bodies = new UploadBudget(JSON_LIMITS);
  /** Running jobs and their request ids, which clients may choose and so repeat. */
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
    });
    this.lifecycle = options.lifecycle ?? new Lifecycle();
    this.log = (options.log ?? createLog('silent')).child({ listener: task });
    const isForced = options.logRequests === true && !this.log.isLevelEnabled('info');
    this.requestLog = isForced ? this.log.child({}, { level: 'info' }) : this.log;
  }

  /** This listener's model as the engine reports it; undefined until it is loaded. */
  model(): ModelInfo | undefined {
    if (this.engine.status().state === 'loading') return undefined;
    return this.engine.info().models.find((model) => model.task === this.task);
  }

  /** What it has to do right now, and what it can take. */
  load(): Load {
    const { task, engine, capacity } = this;
    return loadOf({ task, status: engine.status(), model: this.model(), inFlight: this.metrics.inFlight, capacity });
  }

  /** Stands for the model and what computes it: equal where equal requests with a seed get equal answers. */
  fingerprint(): string {
    const build = describeBuild(this.engine.info(), this.model());
    return fingerprint(createHash('sha256').update(build).digest('hex'));
  }

  /** Every name that a request may call the model by, and whether it must. */
  get names(): { readonly models: readonly string[]; readonly modelOptional: boolean } {
    const { modelId, aliases = [], modelOptional = false } = this.options;
    return { models: [...new Set([modelId, ...aliases])], modelOptional };
  }

  /** 404 unless `name` is the served id or an alias of it. */
  checkModel(name: string): void {
    checkModelName(name, this.names.models);
  }

  /** Why this listener cannot take work now, as an error; undefined when it can. */
  notReady(): HttpError | undefined {
    const { state } = this.engine.status();
    if (this.lifecycle.state !== 'serving' || state === 'closing') return shuttingDown();
    if (state === 'loading') return modelLoading();
    return state === 'lost' ? deviceLost() : undefined;
  }

  /** For probes: also unready while GPU work does not move, though its requests may still succeed. */
  unhealthy(): HttpError | undefined {
    const isStalled = (this.options.vitals?.().stalledMs ?? 0) > STALLED_MS;
    return this.notReady() ?? (isStalled ? deviceLost('the GPU makes no progress') : undefined);
  }

  /** Ends the running jobs of a request id, or all of them, with an error; returns how many there were. */
  abort(id: string | undefined, error: HttpError): number {
    const found = [...this.#jobs].filter(([, other]) => id === undefined || other === id);
    for (const [controller] of found) controller.abort(error);
    return found.length;
  }

  /**
   * Frames a computing request: refuses it while the engine is not ready, ties it to its client, and counts it. `isGeneration` = the model is asked for an
   * answer; `begins` = the phase of its trace before the handler says another.
   */
  job(
    handler: JobHandler,
    { isGeneration = true, begins = 'queue' }: JobOptions = {},
  ): (request: Request, response: Response) => Promise<void> {
    return async (request, response) => {
      response.locals['isGeneration'] = isGeneration;
      const started = performance.now();
      const phases = new Map<Phase, number>([[begins, started]]);
      // What is refused below is a request too.
      response.locals['traced'] = { begun: started, phases };
      // While the process only prepares to leave, it still takes work.
      const problem = this.lifecycle.state === 'leaving' ? undefined : this.notReady();
      if (problem) throw problem;
      const use = keyUseOf(response);
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
          note: (fields) => void (response.locals['note'] = { ...response.locals['note'], ...fields }),
        });
      } catch (error) {
        // The error of the drain deadline or of an asked-for abort says more than the engine's `aborted`.
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
}
