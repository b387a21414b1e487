/** Runs the kernel self-test in its own worker and keeps the results. */
import { computed, signal } from '@preact/signals';
import type { SelfTestMessage } from '../../../test/support/browser/self-test-worker.ts';
import workerUrl from '../../../test/support/browser/self-test-worker.ts?worker&url';
import { startWorker } from '../trusted-types.ts';

export interface CaseResult {
  readonly suite: string;
  readonly name: string;
  /** What is wrong; empty = passed. */
  readonly problem: string;
}

export class SelfTest {
  readonly state = signal<'idle' | 'running' | 'done'>('idle');
  readonly total = signal(0);
  readonly results = signal<readonly CaseResult[]>([]);
  readonly failures = computed(() => this.results.value.filter(({ problem }) => problem !== ''));
  #worker: Worker | undefined;

  start(): void {
    this.stop();
    this.results.value = [];
    this.total.value = 0;
    this.state.value = 'running';
    const worker = startWorker(workerUrl, 'parley self-test');
    this.#worker = worker;
    let batch: CaseResult[] = [];
    const flush = (): void => {
      this.results.value = [...this.results.peek(), ...batch];
      batch = [];
    };
    worker.addEventListener('message', ({ data }: MessageEvent<SelfTestMessage>) => {
      if (data.type === 'begin') this.total.value = data.total;
      else if (data.type === 'skipped') this.total.value--;
      else if (data.type === 'result') {
        batch.push({ suite: data.suite, name: data.name, problem: data.problem });
        if (batch.length >= 10) flush();
      } else {
        flush();
        this.#end();
      }
    });
    worker.addEventListener('error', (event) => {
      batch.push({ suite: 'self-test', name: 'runs', problem: event.message || 'the worker could not be started' });
      flush();
      this.#end();
    });
  }

  stop(): void {
    if (this.state.peek() === 'running') this.#end();
  }

  /** The verdict in one sentence. */
  verdict(): string {
    const { length } = this.results.value;
    const failed = this.failures.value.length;
    if (this.state.value === 'idle') return 'The kernels have not been tested on this adapter.';
    if (this.state.value === 'running') return `Testing kernels: ${length} of ${this.total.value || '…'}`;
    if (failed > 0) return `${failed} of ${length} kernel cases differ from their CPU reference on this adapter.`;
    return length < this.total.value || length === 0
      ? `Stopped after ${length} cases, all right so far.`
      : `All ${length} kernel cases agree with their CPU reference.`;
  }

  #end(): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.state.value = 'done';
  }
}
