/** Server-sent events to one client: framing, keep-alive, and back-pressure that reaches the producer. */
import type { Response } from 'express';

const KEEP_ALIVE_MS = 15_000;
/** Bytes queued for a client beyond which its producer waits. */
const MAX_QUEUED = 1 << 20;
/** How long a client may take nothing of what waits for it. Node looks once in that time, so it is given up within twice as long. */
export const STALL_MS = 60_000;

/** Writes after the status line: begin() is called with the first event, so that earlier failures are still plain errors. */
export class EventStream {
  readonly #response: Response;
  #keepAlive: NodeJS.Timeout | undefined;
  #begun = false;

  constructor(response: Response) {
    this.#response = response;
  }

  /** Whether the status line has gone out. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Sends status and headers; once. */
  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    const response = this.#response;
    response.status(200).set({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    });
    response.socket?.setNoDelay(true);
    response.flushHeaders();
    // What waits for the client keeps its connection alive; one more write would hide that nothing of it is taken.
    this.#keepAlive = setInterval(() => response.writableLength > 0 || response.write(': ping\n\n'), KEEP_ALIVE_MS);
    response.on('close', () => clearInterval(this.#keepAlive));
  }

  /** One `data:` frame; resolves when the producer may go on. */
  async send(data: unknown): Promise<void> {
    await this.#write(`data: ${JSON.stringify(data)}\n\n`);
  }

  /** The frame that clients take as the end. */
  async sendDone(): Promise<void> {
    await this.#write('data: [DONE]\n\n');
  }

  end(): void {
    clearInterval(this.#keepAlive);
    this.#response.end();
  }

  async #write(frame: string): Promise<void> {
    this.#keepAlive?.refresh();
    await writeWithPressure(this.#response, frame);
  }
}

/** Writes; while more than 1 MiB waits for the client, waits with it; a connection that takes nothing for a minute is closed. */
export async function writeWithPressure(response: Response, data: string | Uint8Array): Promise<void> {
  if (response.destroyed) return;
  response.write(data);
  if (response.writableLength <= MAX_QUEUED) return;
  // All that waits may be one write, which is not done before a slow client has taken the last of it: Node looks for parts that are taken too.
  response.setTimeout(STALL_MS);
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
  if (!response.destroyed) response.setTimeout(0);
}
