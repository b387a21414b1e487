/** Server-sent events: framing, keep-alive pings, and back-pressure that reaches the producer. */
import type { Response } from 'express';

const KEEP_ALIVE_MS = 15_000;
/** Bytes buffered for a client beyond which the producer waits. */
const MAX_QUEUED = 1 << 20;
/** Time after which a client that reads nothing is disconnected. Node checks once per this time, so it takes up to twice as long. */
export const STALL_MS = 60_000;

/** An SSE response. The status line is sent by begin(), which is called with the first event, so that an earlier failure is still a plain error response. */
export class EventStream {
  readonly #response: Response;
  #keepAlive: NodeJS.Timeout | undefined;
  #begun = false;

  constructor(response: Response) {
    this.#response = response;
  }

  /** Whether status line and headers have been sent. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Sends status line and headers, and starts the keep-alive pings; further calls do nothing. */
  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    const response = this.#response;
    // A response that was closed already closes no more, so nothing would end the pings.
    if (response.destroyed) return;
    response.status(200).set({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    });
    response.socket?.setNoDelay(true);
    response.flushHeaders();
    // Buffered data keeps the connection alive by itself; another write would hide that the client reads nothing.
    this.#keepAlive = setInterval(() => response.writableLength > 0 || response.write(': ping\n\n'), KEEP_ALIVE_MS);
    response.on('close', () => clearInterval(this.#keepAlive));
  }

  /** Sends one `data:` frame with JSON; resolves when back-pressure allows the next. */
  async send(data: unknown): Promise<void> {
    await this.#write(`data: ${JSON.stringify(data)}\n\n`);
  }

  /** Sends `data: [DONE]`, the frame by which OpenAI's clients recognise the end. */
  async sendDone(): Promise<void> {
    await this.#write('data: [DONE]\n\n');
  }

  /** Stops the pings and ends the response. */
  end(): void {
    clearInterval(this.#keepAlive);
    this.#response.end();
  }

  async #write(frame: string): Promise<void> {
    this.#keepAlive?.refresh();
    await writeWithPressure(this.#response, frame);
  }
}

/** Writes to a response. If more than 1 MiB is then buffered, waits for the buffer to drain; a client that reads nothing for STALL_MS is disconnected. */
export async function writeWithPressure(response: Response, data: string | Uint8Array): Promise<void> {
  if (response.destroyed) return;
  response.write(data);
  if (response.writableLength <= MAX_QUEUED) return;
  // The buffer may be one large write, which completes only at its end. Node's timeout also counts the parts of it that a slow client reads as progress.
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
