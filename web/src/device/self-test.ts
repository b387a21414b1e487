/** Runs the kernel self-test in its own worker and keeps the results. */
import { computed, signal } from '@preact/signals';
import type { SelfTestMessage } from '../../../test/support/browser/self-test.ts';
import { startEngineWorker } from '../backend/start-engine-worker.ts';
import { messageOf } from '../util.ts';
import { SELF_TEST } from '../worker/protocol.ts';
import type { WorkerMessage } from '../worker/protocol.ts';

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
  #endWorker: (() => void) | undefined;

  start(): void {
    this.stop();
    this.results.value = [];
    this.total.value = 0;
    this.state.value = 'running';
    const { worker, failed, end } = startEngineWorker(SELF_TEST, () => {});
    this.#endWorker = end;
    let batch: CaseResult[] = [];
    const flush = (): void => {
      this.results.value = [...this.results.peek(), ...batch];
      batch = [];
    };
    // The messages of engines' workers, such as that the script has started, tell nothing here.
    worker.addEventListener('message', ({ data }: MessageEvent<SelfTestMessage | WorkerMessage>) => {
      if (data.type === 'begin') this.total.value = data.total;
      else if (data.type === 'skipped') this.total.value--;
      else if (data.type === 'result') {
        batch.push({ suite: data.suite, name: data.name, problem: data.problem });
        if (batch.length >= 10) flush();
      } else if (data.type === 'end') {
        flush();
        this.#end();
      }
    });
    failed.catch((error: unknown) => {
      batch.push({ suite: 'self-test', name: 'runs', problem: messageOf(error) });
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
    this.#endWorker?.();
    this.#endWorker = undefined;
    this.state.value = 'done';
  }
}
