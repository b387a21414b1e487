/** The engine in a child process: the messages in addition to those of engine/host.ts, and the child's side. */
import type { MemoryPlan } from '../../engine/api.ts';
import type { Engine } from '../../engine/protocol.ts';
import type { EngineConfig } from '../../engine/config.ts';
import { EngineError, toPlainError } from '../../engine/errors.ts';
import type { PlainError } from '../../engine/errors.ts';
import { serveEngine } from '../../engine/host.ts';
import type { MessagePortLike } from '../../engine/host.ts';

/** The parent's first message. */
export interface StartMessage {
  readonly type: 'start';
  readonly config: EngineConfig;
  /** Dawn's toggles: see engine/platform/node.ts. */
  readonly toggles: 'default' | 'fast';
  /** Folder in which measurements are kept: see engine/platform/node.ts. */
  readonly cache?: string | undefined;
}

/** Sent by the child instead of the host's `hello` if the engine cannot be built; it then exits. */
export interface FailedMessage {
  readonly type: 'failed';
  readonly error: PlainError;
}

/** An internal error of the engine, with its stack, for the log; the client only learns that there was one. */
export interface BugMessage {
  readonly type: 'bug';
  readonly text: string;
}

/** The memory plan of one device, sent before models are loaded. */
export interface PlannedMessage {
  readonly type: 'planned';
  readonly plan: MemoryPlan;
}

/** Builds the engine; `planned` is called with each device's memory plan. */
type Build = (message: StartMessage, log: (line: string) => void, planned: (plan: MemoryPlan) => void) => Promise<Engine>;

/** Main function of the child: waits for the start message, builds the engine, and serves it until the parent closes it or disconnects. */
export function runEngineProcess(build: Build): void {
  // Ctrl-C reaches the whole process group; the parent decides when the engine ends, so that running requests may finish.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  process.on('disconnect', () => process.exit(0));
  const log = (line: string): void => void process.stdout.write(`${line}\n`);
  const reportBug = (text: string): void => void process.send?.({ type: 'bug', text } satisfies BugMessage);
  process.once('message', (message: StartMessage) => {
    build(message, log, (plan) => void process.send?.({ type: 'planned', plan } satisfies PlannedMessage)).then(
      (engine) => serveEngine(engine, parentPort(), reportBug),
      (error: unknown) => {
        // An EngineError is a refusal that says everything; any other error is a bug, whose stack is wanted.
        if (error instanceof Error && !(error instanceof EngineError)) log(error.stack ?? error.message);
        process.send?.({ type: 'failed', error: toPlainError(error) } satisfies FailedMessage, () => process.exit(1));
      },
    );
  });
}

function parentPort(): MessagePortLike {
  return {
    // After the parent is gone there is nobody to tell.
    post: (message) => void (process.connected && process.send?.(message, undefined, undefined, () => {})),
    onMessage: (callback) => void process.on('message', callback),
    onClose: (callback) => void process.on('disconnect', callback),
  };
}
