/**
 * Prometheus metrics of one listener. They have SGLang's names, which routers and autoscalers read (`sglang:num_queue_reqs`, `sglang:token_usage`), and for some
 * gauges and totals vLLM's too; Parley's own begin with `parley_`. All come from counters of this process and the engine's last status, so a scrape never waits for
 * the engine. They cover this listener's model only, since readers take the first series of a family.
 */
import { Counter, Histogram, Registry } from 'prom-client';
import { addGauges } from '../fleet/gauges.ts';
import type { GaugeSource } from '../fleet/gauges.ts';
import { rateOf } from '../fleet/load.ts';

const LATENCY_BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200];
const TOKEN_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

const FACTOR_BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];
const AUDIO_NAMES = {
  speech: ['parley_audio_seconds_total', 'parley_tts_rtf'],
  transcription: ['parley_asr_audio_seconds_total', 'parley_asr_rtf'],
} as const;

/** A finished request, for the metrics. */
export interface RequestRecord {
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
  /** Whether the model was asked for an answer; SGLang's metrics count only such requests, not probes and listings. */
  readonly isGeneration: boolean;
}

/** The metrics of one listener; `registry` has them in Prometheus's text format. */
export class ListenerMetrics {
  readonly registry = new Registry();
  /** Jobs that are running; kept by ListenerContext.job. */
  inFlight = 0;
  /** Generated tokens per second since the last reading. */
  readonly throughput: () => number;
  readonly #labels: { readonly model_name: string };
  readonly #requests: Counter<'route' | 'status'>;
  readonly #generations: Counter<'model_name'>;
  readonly #aborted: Counter<'model_name'>;
  readonly #latency: Histogram<'model_name'>;
  readonly #queue: Histogram<'model_name'> | undefined;
  readonly #firstToken: Histogram<'model_name'>;
  readonly #perToken: readonly Histogram<'model_name'>[];
  readonly #audio: Counter<'model_name'> | undefined;
  readonly #realTimeFactor: Histogram<'model_name'> | undefined;

  constructor(source: GaugeSource) {
    const { task, model, engine } = source;
    this.throughput = rateOf(() => (task === 'chat' ? engine.status().generatedTokens : 0));
    const registers = [this.registry];
    const labelNames = ['model_name'] as const;
    this.#labels = { model_name: model };
    this.#requests = new Counter({
      name: 'parley_requests_total',
      help: 'Answers by route and status',
      labelNames: ['route', 'status'],
      registers,
    });
    this.#generations = new Counter({ name: 'sglang:num_requests_total', help: 'Requests to the model, ended', labelNames, registers });
    this.#aborted = new Counter({
      name: 'sglang:num_aborted_requests_total',
      help: 'Requests whose client went away',
      labelNames,
      registers,
    });
    // Exported from the start, so that the first increment counts in a rate.
    for (const counter of [this.#generations, this.#aborted]) counter.inc(this.#labels, 0);
    const histogram = (name: string, help: string, buckets: number[]): Histogram<'model_name'> =>
      new Histogram({ name, help, labelNames, buckets, registers });
    this.#latency = histogram('sglang:e2e_request_latency_seconds', 'Request to last byte', LATENCY_BUCKETS);
    this.#firstToken = histogram('sglang:time_to_first_token_seconds', 'Request to first token, sound or segment', LATENCY_BUCKETS);
    if (task === 'chat') this.#queue = histogram('sglang:queue_time_seconds', 'Request to its admission', LATENCY_BUCKETS);
    const names = task === 'chat' ? ['sglang:inter_token_latency_seconds', 'sglang:time_per_output_token_seconds'] : [];
    this.#perToken = names.map((name) => histogram(name, 'Time from one token to the next', TOKEN_BUCKETS));
    if (task !== 'chat') {
      const [total, factor] = AUDIO_NAMES[task];
      this.#audio = new Counter({ name: total, help: 'Seconds of audio made or heard', labelNames, registers });
      this.#realTimeFactor = histogram(factor, 'Seconds of work a second of audio', FACTOR_BUCKETS);
    }
    addGauges(this.registry, source, this.throughput);
  }

  /** Counts a finished request. */
  finished({ route, status, seconds, isGeneration }: RequestRecord): void {
    this.#requests.inc({ route, status: String(status) });
    if (!isGeneration) return;
    this.#generations.inc(this.#labels);
    if (status === 499) this.#aborted.inc(this.#labels);
    else if (status === 200) this.#latency.observe(this.#labels, seconds);
  }

  /** Records the time in seconds from a chat request's arrival to its first step. */
  admitted(seconds: number): void {
    this.#queue?.observe(this.#labels, seconds);
  }

  /** Records the time in seconds from a request's arrival to its first token, audio or segment. */
  firstOutput(seconds: number): void {
    this.#firstToken.observe(this.#labels, seconds);
  }

  /** Records that `count` tokens took `seconds`. */
  tokens(count: number, seconds: number): void {
    if (count > 0) for (const histogram of this.#perToken) histogram.observe(this.#labels, seconds / count);
  }

  /** Records the audio seconds of a finished speech or transcription request, and the seconds that it took. */
  audio(audioSeconds: number, workSeconds: number): void {
    this.#audio?.inc(this.#labels, audioSeconds);
    if (audioSeconds > 0) this.#realTimeFactor?.observe(this.#labels, workSeconds / audioSeconds);
  }
}
