/** What both kinds of loading make of their options. */
import { DEFAULT_ENGINE_CONFIG } from '../engine/config.ts';
import type { EngineConfig } from '../engine/config.ts';
import { SourceError } from '../sources/index.ts';
import { BadRequestError, errorClass } from './errors.ts';
import { toApiError } from './parley.ts';
import type { LoadOptions } from './types.ts';

export const TASKS = ['chat', 'speech', 'transcription'] as const;
export type Task = (typeof TASKS)[number];

/** The models that are named, in the order of the tasks; throws where there is none, or what names one is no text. */
export function namedModels(options: LoadOptions): { readonly task: Task; readonly source: string }[] {
  const named = TASKS.flatMap((task) => {
    const source: unknown = options[task];
    if (source === undefined) return [];
    if (typeof source !== 'string' || source.trim() === '')
      throw invalid(task, `'${task}' must name a model, got ${JSON.stringify(source)}`);
    return [{ task, source: source.trim() }];
  });
  if (named.length === 0) throw invalid('chat', `no model is named: give one of ${TASKS.map((task) => `'${task}'`).join(', ')}`);
  return named;
}

/** Settings of the engine; throws for a name that it does not have. */
export function engineSettings({ engine = {} }: LoadOptions): Partial<EngineConfig> {
  const known = Object.keys(DEFAULT_ENGINE_CONFIG);
  const unknown = Object.keys(engine).find((name) => !known.includes(name));
  if (unknown !== undefined) throw invalid(`engine.${unknown}`, `the engine has no setting '${unknown}'; it has ${known.join(', ')}`);
  return engine;
}

const invalid = (param: string, message: string): BadRequestError =>
  new BadRequestError(400, { message, type: 'invalid_request_error', param, code: 'invalid_value' });

/** What went wrong while a model was fetched or loaded, as the one kind of error that callers know. */
export function toLoadError(error: unknown, task: Task | undefined): Error {
  if (!(error instanceof SourceError)) return error instanceof BadRequestError ? error : toApiError(error);
  const status = STATUS[error.kind] ?? 400;
  const said = {
    message: error.message,
    type: status >= 500 ? 'server_error' : 'invalid_request_error',
    param: task ?? null,
    code: `model_${error.kind}`,
  };
  return new (errorClass(status))(status, said, undefined, undefined, error);
}

/** What the hub or the network answers in the same case. */
const STATUS: Partial<Record<SourceError['kind'], number>> = { denied: 403, missing: 404, unreachable: 503, network: 503, disk: 507 };
