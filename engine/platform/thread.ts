/** Runs operations in a worker thread, so that they do not block the engine's thread. */
import { EngineError, engineClosing } from '../errors.ts';
import { Answerer, Caller } from '../util/rpc.ts';
import type { CallMessage, Methods, NewsMessage, OperationTable } from '../util/rpc.ts';
import type { PlatformWorker, WorkerPort } from './platform.ts';

/** A worker thread that is started by the first call, and again by the next call after it has ended. */
export class LazyThread<Table extends OperationTable> {
  readonly #table: Table;
  readonly #start: () => PlatformWorker;
  #isClosed = false;
  #running: { readonly worker: PlatformWorker; readonly caller: Caller<Table> } | undefined;

  /** `start` starts a thread whose `main` calls `serveThread` with the same table. */
  constructor(table: Table, start: () => PlatformWorker) {
    this.#table = table;
    this.#start = start;
  }

  /** The operations' methods; their calls reject with EngineError('internal') if the thread ends. Throws EngineError('shutting_down') after close(). */
  get methods(): Methods<Table> {
    return (this.#running ??= this.#run()).caller.methods;
  }

  /** Ends the thread. Running calls reject with EngineError('shutting_down'). */
  async close(): Promise<void> {
    this.#isClosed = true;
    const running = this.#running;
    running?.caller.fail(engineClosing());
    await running?.worker.terminate();
  }

  #run(): { readonly worker: PlatformWorker; readonly caller: Caller<Table> } {
    if (this.#isClosed) throw engineClosing();
    const worker = this.#start();
    const caller = new Caller(this.#table, (message) => worker.post(message));
    worker.onMessage((message) => caller.receive(message as NewsMessage));
    worker.onExit((why) => {
      this.#running = undefined;
      caller.fail(new EngineError('internal', `a thread of the engine ended: ${why}`));
    });
    return { worker, caller };
  }
}

/** In the thread: answers calls one after the other until the thread is ended. */
export function serveThread<Table extends OperationTable>(
  table: Table,
  methods: Methods<Table>,
  port: WorkerPort,
  log: (line: string) => void,
): void {
  const answerer = new Answerer(table, methods, (news) => port.post({ type: 'news', news: [news] } satisfies NewsMessage), log);
  let last: Promise<void> = Promise.resolve();
  port.onMessage((message) => {
    last = last.then(() => answerer.receive(message as CallMessage));
  });
}
