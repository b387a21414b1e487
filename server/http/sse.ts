/** Server-sent events to one client: framing, keep-alive, and back-pressure that reaches the producer. */
import type { Response } from 'express';

const KEEP_ALIVE_MS = 15_000;
/** Bytes queued for a client beyond which its producer waits, and how long it waits before the client is given up. */
const MAX_QUEUED = 1 << 20;
const STALL_MS = 60_000;

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
    this.#keepAlive = setInterval(() => response.write(': ping\n\n'), KEEP_ALIVE_MS);
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

/** Writes; while more than 1 MiB waits for the client, waits with it; destroys a connection that takes nothing for a minute. */
export async function writeWithPressure(response: Response, data: string | Uint8Array): Promise<void> {
  if (response.destroyed) return;
  response.write(data);
  if (response.writableLength <= MAX_QUEUED) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => response.destroy(), STALL_MS);
    const done = (): void => {
      clearTimeout(timer);
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}
