/** Validates the options of loading, for Node and pages. */
import { ENGINE_SETTINGS } from '../engine/config.ts';
import type { EngineConfig } from '../engine/config.ts';
import { MODEL_TASKS } from '../engine/model-types.ts';
import type { ModelTask } from '../engine/model-types.ts';
import type { Setting } from '../engine/util/setting.ts';
import { SourceError } from '../sources/index.ts';
import { BadRequestError, errorClass } from './errors.ts';
import { toApiError } from './parley.ts';
import type { LoadOptions } from './types.ts';

/** The models that the options name, in the order of the tasks. Throws BadRequestError if there is none, or a name is no string. */
export function namedModels(options: LoadOptions): { readonly task: ModelTask; readonly source: string }[] {
  const named = MODEL_TASKS.flatMap((task) => {
    const source: unknown = options[task];
    if (source === undefined) return [];
    if (typeof source !== 'string' || source.trim() === '') throw invalid(task, `'${task}' must name a model, got ${shown(source)}`);
    return [{ task, source: source.trim() }];
  });
  if (named.length === 0) throw invalid('chat', `no model is named: give one of ${MODEL_TASKS.map((task) => `'${task}'`).join(', ')}`);
  return named;
}

/** Validates the engine settings, without those that are undefined. Throws BadRequestError for an unknown name and for a value that is not allowed. */
export function engineSettings({ engine }: LoadOptions): Partial<EngineConfig> {
  const rows: ReadonlyMap<string, Setting> = new Map(Object.entries(ENGINE_SETTINGS));
  const given = Object.entries(engine ?? {}).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) {
    const row = rows.get(name);
    if (!row) throw invalid(`engine.${name}`, `the engine has no setting '${name}'; it has ${[...rows.keys()].join(', ')}`);
    const must = mustBe(row, value);
    if (must !== undefined) throw invalid(`engine.${name}`, `'engine.${name}' must be ${must}, got ${shown(value)}`);
  }
  // Copied, because a reactive array cannot be sent to the engine.
  return Object.fromEntries(given.map(([name, value]) => [name, Array.isArray(value) ? [...(value as unknown[])] : value]));
}

/** A value for a message; JSON has no words for some, such as 1n. */
function shown(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

/** Says what a setting's value must be if it is not allowed, else undefined. Numbers are in the code's units (bytes), not the operator's (GiB). */
function mustBe(row: Setting, value: unknown): string | undefined {
  switch (row.type) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'true or false';
    case 'string':
      if (row.choices) return row.choices.some((choice) => choice === value) ? undefined : `one of ${row.choices.join(', ')}`;
      return typeof value === 'string' && value !== '' ? undefined : 'a text';
    case 'list':
      return Array.isArray(value) && value.every((item) => typeof item === 'string') ? undefined : 'an array of texts';
    case 'int':
    case 'number':
    case 'ints': {
      const { type, words = [], min = -Infinity, max = Infinity, scale = 1 } = row;
      const fits = (one: unknown): boolean =>
        (type === 'number' ? Number.isFinite(one) : Number.isSafeInteger(one)) && Number(one) >= min * scale && Number(one) <= max * scale;
      const isFit = type === 'ints' ? Array.isArray(value) && value.every(fits) : fits(value);
      if (isFit || words.some((word) => word === value)) return undefined;
      const kind = { int: 'an integer', number: 'a number', ints: 'an array of integers' }[type];
      const bounds = max === Infinity ? `of at least ${min * scale}` : `from ${min * scale} to ${max * scale}`;
      return [...words, `${kind} ${bounds}`].join(' or ');
    }
  }
}

const invalid = (param: string, message: string): BadRequestError =>
  new BadRequestError(400, { message, type: 'invalid_request_error', param, code: 'invalid_value' });

/** Converts a failure of fetching or loading a model to an APIError. */
export function toLoadError(error: unknown, task: ModelTask | undefined): Error {
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

/** HTTP status by kind of a source's error. */
const STATUS: Partial<Record<SourceError['kind'], number>> = { denied: 403, missing: 404, unreachable: 503, network: 503, disk: 507 };
