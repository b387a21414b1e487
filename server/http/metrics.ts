/**
 * Prometheus metrics of one listener. SGLang's names, because routers and autoscalers read those (`sglang:num_queue_reqs`,
 * `sglang:token_usage`); our own carry the prefix `parley_`. Everything comes from counters of this process and the engine's last
 * snapshot, so a scrape never waits for the engine. One listener's models only: readers take the first series of a family.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Engine } from '../../engine/protocol.ts';

export type Task = 'chat' | 'speech' | 'transcription';

const LATENCY_BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200];
const TOKEN_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

const FACTOR_BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];
const AUDIO_NAMES = {
  speech: ['parley_audio_seconds_total', 'parley_tts_rtf'],
  transcription: ['parley_asr_audio_seconds_total', 'parley_asr_rtf'],
} as const;

/** One finished request, as the metrics see it. */
export interface RequestRecord {
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
}

export class ListenerMetrics {
  readonly registry = new Registry();
  /** Requests between their first and last byte of work; the handlers keep it. */
  inFlight = 0;
  readonly #labels: { readonly model_name: string };
  readonly #requests: Counter<'route' | 'status'>;
  readonly #aborted: Counter<'model_name'>;
  readonly #latency: Histogram<'model_name'>;
  readonly #firstToken: Histogram<'model_name'>;
  readonly #perToken: readonly Histogram<'model_name'>[];
  readonly #audio: Counter<'model_name'> | undefined;
  readonly #realTimeFactor: Histogram<'model_name'> | undefined;

  /** `restarts` = how often the engine was started again. */
  constructor(task: Task, model: string, engine: Engine, restarts: () => number) {
    const registers = [this.registry];
    const labelNames = ['model_name'] as const;
    this.#labels = { model_name: model };
    this.#requests = new Counter({
      name: 'parley_requests_total',
      help: 'Answers by route and status',
      labelNames: ['route', 'status'],
      registers,
    });
    this.#aborted = new Counter({
      name: 'sglang:num_aborted_requests_total',
      help: 'Requests whose client went away',
      labelNames,
      registers,
    });
    const histogram = (name: string, help: string, buckets: number[]): Histogram<'model_name'> =>
      new Histogram({ name, help, labelNames, buckets, registers });
    this.#latency = histogram('sglang:e2e_request_latency_seconds', 'Request to last byte', LATENCY_BUCKETS);
    this.#firstToken = histogram('sglang:time_to_first_token_seconds', 'Request to first token, sound or segment', LATENCY_BUCKETS);
    const names = task === 'chat' ? ['sglang:inter_token_latency_seconds', 'sglang:time_per_output_token_seconds'] : [];
    this.#perToken = names.map((name) => histogram(name, 'Time from one token to the next', TOKEN_BUCKETS));
    if (task !== 'chat') {
      const [total, factor] = AUDIO_NAMES[task];
      this.#audio = new Counter({ name: total, help: 'Seconds of audio made or heard', labelNames, registers });
      this.#realTimeFactor = histogram(factor, 'Seconds of work a second of audio', FACTOR_BUCKETS);
    }
    this.#addGauges(task, engine, restarts);
  }

  finished({ route, status, seconds }: RequestRecord): void {
    this.#requests.inc({ route, status: String(status) });
    if (status === 499) this.#aborted.inc(this.#labels);
    else if (status === 200) this.#latency.observe(this.#labels, seconds);
  }

  firstOutput(seconds: number): void {
    this.#firstToken.observe(this.#labels, seconds);
  }

  tokens(count: number, seconds: number): void {
    if (count > 0) for (const histogram of this.#perToken) histogram.observe(this.#labels, seconds / count);
  }

  audio(audioSeconds: number, workSeconds: number): void {
    this.#audio?.inc(this.#labels, audioSeconds);
    if (audioSeconds > 0) this.#realTimeFactor?.observe(this.#labels, workSeconds / audioSeconds);
  }

  #addGauges(task: Task, engine: Engine, restarts: () => number): void {
    const labels = this.#labels;
    const registers = [this.registry];
    const labelNames = ['model_name'] as const;
    const gauge = (name: string, help: string, read: () => number): void => {
      new Gauge({
        name,
        help,
        labelNames,
        registers,
        collect() {
          this.set(labels, read());
        },
      });
    };
    /** A total that the engine keeps; it starts again at 0 with the engine, as counters may. */
    const total = (name: string, help: string, read: () => number): void => {
      new Counter({
        name,
        help,
        labelNames,
        registers,
        collect() {
          this.reset();
          this.inc(labels, read());
        },
      });
    };
    const status = () => engine.status();
    gauge('parley_engine_ready', '1 while the engine can run this model', () => (status().state === 'ready' ? 1 : 0));
    gauge('parley_gpu_buffer_bytes', 'Bytes of GPU buffers', () => status().gpuBytes);
    total('parley_engine_restarts_total', 'Times the engine was started again', restarts);
    total('parley_gpu_submits_total', 'Queue submissions', () => status().submits);
    total('parley_gpu_read_bytes_total', 'Bytes read back from the GPU', () => status().bytesRead);
    // The snapshot counts the chat scheduler's rows; the audio listeners count their own requests.
    gauge('sglang:num_running_reqs', 'Requests that run', () => (task === 'chat' ? status().running : this.inFlight));
    gauge('sglang:num_queue_reqs', 'Requests that wait', () => (task === 'chat' ? status().waiting : 0));
    if (task !== 'chat') return;
    gauge('sglang:token_usage', 'Used share of the KV pages, 0..1', () => status().kvPagesUsed / Math.max(1, status().kvPagesTotal));
    gauge('sglang:num_pages', 'KV pages', () => status().kvPagesTotal);
    gauge(
      'sglang:cache_hit_rate',
      'Share of prompt tokens found in the cache',
      () => status().cachedTokens / Math.max(1, status().promptTokens),
    );
    gauge(
      'sglang:gen_throughput',
      'Generated tokens a second since the scrape before',
      rateOf(() => status().generatedTokens),
    );
    total('sglang:prompt_tokens_total', 'Prompt tokens', () => status().promptTokens);
    total('sglang:generation_tokens_total', 'Generated tokens', () => status().generatedTokens);
    total('sglang:cached_tokens_total', 'Prompt tokens found in the cache', () => status().cachedTokens);
    total('parley_spec_drafted_tokens_total', 'Guesses verified by speculative decoding', () => status().draftedTokens);
    total('parley_spec_accepted_tokens_total', 'Guesses that were right', () => status().acceptedTokens);
  }
}

/** Growth of a total a second between calls; calls within a second of each other get the same answer. */
function rateOf(total: () => number): () => number {
  let [since, before, rate] = [performance.now(), 0, 0];
  return () => {
    const [now, count] = [performance.now(), total()];
    if (now - since < 1000) return rate;
    // A total that starts again comes from an engine that was started again.
    rate = (Math.max(0, count - before) * 1000) / (now - since);
    [since, before] = [now, count];
    return rate;
  };
}
