/** Prometheus gauges and totals of one listener, read from its counters and the engine's last status when scraped. */
import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { ModelTask } from '../../engine/model-types.ts';
import type { Engine } from '../../engine/protocol.ts';
import type { Load } from './load.ts';

export interface GaugeSource {
  readonly task: ModelTask;
  /** Served model id, the label `model_name` of every series. */
  readonly model: string;
  readonly engine: Engine;
  readonly load: () => Load;
  /** How often the engine has been restarted. */
  readonly restarts: () => number;
  /** How often it lost its GPU device. */
  readonly devicesLost: () => number;
}

/** One metric name, or several for the same number. */
type Names = string | readonly string[];

/** Registers all gauges and totals of a listener; `throughput` gives generated tokens per second. */
export function addGauges(
  registry: Registry,
  { task, model, engine, load, restarts, devicesLost }: GaugeSource,
  throughput: () => number,
): void {
  const { gauge, total, pagesIn } = families(registry, model);
  const status = () => engine.status();
  gauge('parley_engine_ready', '1 while the engine can run this model', () => (status().state === 'ready' ? 1 : 0));
  gauge('parley_gpu_buffer_bytes', 'Bytes of GPU buffers', () => status().gpuBytes);
  total('parley_engine_restarts_total', 'Times the engine was started again', restarts);
  total('parley_gpu_device_lost_total', 'Times the GPU device was lost', devicesLost);
  total('parley_gpu_submits_total', 'Queue submissions', () => status().submits);
  total('parley_gpu_read_bytes_total', 'Bytes read back from the GPU', () => status().bytesRead);
  gauge(['sglang:num_running_reqs', 'vllm:num_requests_running'], 'Requests that run', () => load().running);
  gauge(['sglang:num_queue_reqs', 'vllm:num_requests_waiting'], 'Requests that wait', () => load().waiting);
  // vLLM's own router still reads the last name.
  const usage = ['sglang:token_usage', 'vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'];
  gauge(usage, 'Occupied share of the KV pages, or of the requests that may wait, 0..1', () => load().usage);
  gauge('sglang:num_used_tokens', 'Occupied tokens of the KV pages, or requests', () => load().used);
  gauge('sglang:max_total_num_tokens', 'Tokens of all KV pages, or requests that may wait', () => load().total);
  gauge('sglang:max_running_requests', 'Requests that may run side by side', () => load().maxRunning);
  gauge('sglang:gen_throughput', 'Generated tokens a second since the scrape before', throughput);
  if (task !== 'chat') return;
  gauge('sglang:num_pages', 'KV pages', () => load().pages);
  gauge('sglang:page_size', 'Tokens a KV page', () => load().pageSize);
  pagesIn(load, 'sglang:cache_config_info', 'page_size', 'num_pages');
  pagesIn(load, 'vllm:cache_config_info', 'block_size', 'num_gpu_blocks');
  gauge('sglang:cache_hit_rate', 'Share of prompt tokens found in the cache', () => load().hitRate);
  const queries = ['sglang:prompt_tokens_total', 'vllm:prompt_tokens_total', 'vllm:prefix_cache_queries_total', 'vllm:gpu_prefix_cache_queries_total']; // prettier-ignore
  total(queries, 'Prompt tokens', () => status().promptTokens);
  total(['sglang:generation_tokens_total', 'vllm:generation_tokens_total'], 'Generated tokens', () => status().generatedTokens);
  const hits = ['sglang:cached_tokens_total', 'vllm:prefix_cache_hits_total', 'vllm:gpu_prefix_cache_hits_total'];
  total(hits, 'Prompt tokens found in the cache', () => status().cachedTokens);
  total('parley_spec_drafted_tokens_total', 'Guesses verified by speculative decoding', () => status().draftedTokens);
  total('parley_spec_accepted_tokens_total', 'Guesses that were right', () => status().acceptedTokens);
}

/** Functions that register metrics with one series, labelled with the model. */
function families(registry: Registry, model: string) {
  const labels = { model_name: model };
  const registers = [registry];
  const labelNames = ['model_name'] as const;
  return {
    gauge(names: Names, help: string, read: () => number): void {
      for (const name of [names].flat()) {
        new Gauge({
          name,
          help,
          labelNames,
          registers,
          collect() {
            this.set(labels, read());
          },
        });
      }
    },
    /** A counter that the engine keeps; it restarts at 0 with the engine, as Prometheus allows. */
    total(names: Names, help: string, read: () => number): void {
      for (const name of [names].flat()) {
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
      }
    },
    /** An info metric of value 1 with the KV pages in its labels. */
    pagesIn(load: () => Load, name: string, size: string, count: string): void {
      new Gauge({
        name,
        help: 'KV pages, in labels',
        labelNames: [...labelNames, size, count],
        registers,
        collect() {
          const { pageSize, pages } = load();
          this.reset();
          this.set({ ...labels, [size]: String(pageSize), [count]: String(pages) }, 1);
        },
      });
    },
  };
}
