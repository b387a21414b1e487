/** Operations done in a thread of their own, so that they hold up nothing on the engine's. */
import { EngineError } from '../errors.ts';
import { Answerer, Caller } from '../util/rpc.ts';
import type { CallMessage, Methods, NewsMessage, OperationTable } from '../util/rpc.ts';
import type { PlatformWorker, WorkerPort } from './platform.ts';

/** A thread that the first call starts, and a later one again after it has ended. */
export class LazyThread<Table extends OperationTable> {
  readonly #table: Table;
  readonly #start: () => PlatformWorker;
  #running: { readonly worker: PlatformWorker; readonly caller: Caller<Table> } | undefined;

  /** `start` starts a module whose `main` calls `serveThread` with the same table. */
  constructor(table: Table, start: () => PlatformWorker) {
    this.#table = table;
    this.#start = start;
  }

  /** The operations; their calls reject with EngineError('internal') when the thread ends. */
  get methods(): Methods<Table> {
    return (this.#running ??= this.#run()).caller.methods;
  }

  async close(): Promise<void> {
    await this.#running?.worker.terminate();
  }

  #run(): { readonly worker: PlatformWorker; readonly caller: Caller<Table> } {
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

/** In the thread: answers the calls, one after the other, until it is ended. */
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
