/** Entry of a thread under Deno. The first message says what to run; all others are for the module that runs. */
import type { DenoNews, DenoTask } from './deno-api.ts';
import type { WorkerPort } from './platform.ts';

const scope = globalThis as unknown as {
  addEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
  postMessage(news: DenoNews): void;
  close(): void;
};

let started = false;
/** Messages that arrived before the module listened. */
const waiting: unknown[] = [];
let receive = (message: unknown): void => void waiting.push(message);

const port: WorkerPort = {
  post: (message) => scope.postMessage({ message }),
  onMessage: (callback) => {
    receive = callback;
    for (const message of waiting.splice(0)) callback(message);
  },
  close: () => {
    // Deno does not report that a thread has closed itself.
    scope.postMessage({ closed: true });
    scope.close();
  },
};

scope.addEventListener('message', ({ data }) => {
  if (started) return receive(data);
  started = true;
  // A rejection ends the thread with an error event at its parent.
  void run(data as DenoTask);
});

async function run({ module, platform, library }: DenoTask): Promise<void> {
  const { main } = (await import(module)) as { main(platform: unknown, port: WorkerPort): void };
  if (library !== undefined) return main({ grammarLibrary: () => grammarLibrary(library) }, port);
  const { createDenoPlatform } = (await import(platform)) as { createDenoPlatform(): unknown };
  main(createDenoPlatform(), port);
}

/** Loads the grammar library. It is a UMD file in a package that declares itself ESM, so when imported it assigns itself to the global object. */
async function grammarLibrary(url: string): Promise<unknown> {
  await import(url);
  return (globalThis as { xgrammar?: unknown }).xgrammar;
}
