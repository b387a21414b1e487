/**
 * OpenTelemetry traces of requests to the models, sent as OTLP/JSON over HTTP. Loaded only if OTEL_EXPORTER_OTLP_ENDPOINT is set. Spans have names, counts and
 * times, never content.
 */
import { randomBytes } from 'node:crypto';
import { VERSION } from '../version.ts';
import type { Logger } from '../log.ts';
import { NAMES } from './names.ts';
import type { RequestTimes, Tracer } from './types.ts';

const FLUSH_MS = 1_000;
/** Most spans that are queued for the collector; more are dropped. */
const MAX_WAITING = 4096;
const EXPORT_MS = 10_000;
const [SERVER, INTERNAL] = [2, 1];

type Value = string | number | readonly string[];

/** A span in OTLP/JSON. */
interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly object[];
  readonly status: { readonly code?: number };
}

interface TracerOptions {
  /** Base URL of the collector, without /v1/traces. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly log: Logger;
}

/** Makes a tracer that is configured by OpenTelemetry's environment variables. */
export function createTracer(env: Readonly<Record<string, string | undefined>>, log: Logger): Tracer {
  const pairs = (env['OTEL_EXPORTER_OTLP_HEADERS'] ?? '').split(',').flatMap((pair) => {
    const [, name, value] = /^\s*([^=\s]+)\s*=(.*)$/.exec(pair) ?? [];
    return name === undefined ? [] : [[name, decoded(value!.trim())] as const];
  });
  const endpoint = (env['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? '').replace(/\/+$/, '');
  // By OpenTelemetry's rules an empty variable counts as unset.
  return new OtlpTracer({ endpoint, headers: Object.fromEntries(pairs), serviceName: env['OTEL_SERVICE_NAME'] || 'parley', log });
}

/** Percent-decodes a header's value; one that is not validly encoded is taken as it is. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

class OtlpTracer implements Tracer {
  readonly #options: TracerOptions;
  #waiting: Span[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isFailing = false;

  constructor(options: TracerOptions) {
    this.#options = options;
  }

  request(times: RequestTimes): void {
    const context = parentOf(times.traceparent);
    if (context && !context.isSampled) return;
    if (this.#waiting.length >= MAX_WAITING) return;
    this.#waiting.push(...spansOf(times, context));
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
  }

  /** Sends the queued spans. If the collector fails, they are lost, and the first failure is logged. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const spans = this.#waiting.splice(0);
    if (spans.length === 0) return;
    const { endpoint, headers, serviceName, log } = this.#options;
    const resource = { attributes: attributesOf({ 'service.name': serviceName, 'service.version': VERSION }) };
    const body = JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'parley', version: VERSION }, spans }] }] });
    try {
      const signal = AbortSignal.timeout(EXPORT_MS);
      const answer = await fetch(`${endpoint}/v1/traces`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
        signal,
      });
      await answer.arrayBuffer();
      if (!answer.ok) throw new Error(`the collector answered ${answer.status}`);
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.warn({ why: error instanceof Error ? error.message : String(error) }, 'traces could not be sent');
      this.#isFailing = true;
    }
  }
}

interface Parent {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Parses a W3C traceparent header; undefined if it is absent or invalid. */
function parentOf(header: string | undefined): Parent | undefined {
  const [, traceId, spanId, flags] = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/.exec(header ?? '') ?? [];
  if (traceId === undefined || /^0+$/.test(traceId) || /^0+$/.test(spanId!)) return undefined;
  return { traceId, spanId: spanId!, isSampled: (Number.parseInt(flags!, 16) & 1) === 1 };
}

/** The spans of a request: one for the request and, unless it was refused, one for each phase. */
function spansOf(
  { route, generates, method, model, status, begun, phases, ended, note }: RequestTimes,
  parent: Parent | undefined,
): Span[] {
  const { operation, output } = generates;
  const traceId = parent?.traceId ?? randomBytes(16).toString('hex');
  const root = randomBytes(8).toString('hex');
  const failed = status >= 400;
  const common = { traceId, status: {} };
  const at = (ms: number): string => String(BigInt(Math.round((performance.timeOrigin + ms) * 1000)) * 1000n);
  const begins = phases.size > 1 ? [...phases] : [];
  const within = begins.map(([name, from], i): Span => {
    const spanId = randomBytes(8).toString('hex');
    const to = begins[i + 1]?.[1] ?? ended;
    return {
      ...common,
      spanId,
      parentSpanId: root,
      name,
      kind: INTERNAL,
      startTimeUnixNano: at(from),
      endTimeUnixNano: at(to),
      attributes: [],
    };
  });
  const attributes = attributesOf({
    [NAMES.operation]: operation,
    [NAMES.provider]: 'parley',
    [NAMES.requestModel]: model,
    [NAMES.method]: method,
    [NAMES.route]: route,
    [NAMES.status]: status,
    [NAMES.outputType]: output,
    [NAMES.inputTokens]: note['prompt_tokens'],
    [NAMES.cachedTokens]: note['cached_tokens'],
    [NAMES.outputTokens]: note['completion_tokens'] ?? note['output_tokens'],
    [NAMES.finishReasons]: typeof note['finish_reason'] === 'string' ? [note['finish_reason']] : undefined,
    [NAMES.audioSeconds]: note['audio_seconds'],
    [NAMES.error]: failed ? (note['code'] ?? String(status)) : undefined,
  });
  return [
    {
      ...common,
      spanId: root,
      ...(parent && { parentSpanId: parent.spanId }),
      name: `${operation} ${model}`,
      kind: SERVER,
      startTimeUnixNano: at(begun),
      endTimeUnixNano: at(ended),
      attributes,
      status: failed ? { code: 2 } : {},
    },
    ...within,
  ];
}

function attributesOf(values: Readonly<Record<string, unknown>>): object[] {
  return Object.entries(values).flatMap(([key, value]) => (isValue(value) ? [{ key, value: encoded(value) }] : []));
}

const isValue = (value: unknown): value is Value => typeof value === 'string' || typeof value === 'number' || Array.isArray(value);

function encoded(value: Value): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map((one) => encoded(one)) } };
}
