/** Turns speech into a Response, whose body is generated while it is read. */
import type { Outlet } from '../server/speech/speak.ts';

/** Makes an outlet, and the Response that is written through it. Cancelling the response's body aborts the call. */
export function responseOutlet(
  controller: AbortController,
  toError: (error: unknown) => Error,
): { readonly outlet: Outlet; readonly response: Promise<Response> } {
  let resolve: (response: Response) => void;
  const response = new Promise<Response>((done) => (resolve = done));
  const body = new TransformStream<Uint8Array, Uint8Array>();
  const writer = body.writable.getWriter();
  // The reader has cancelled the body.
  writer.closed.catch(() => controller.abort());
  const begin = (headers: Readonly<Record<string, string>>): void => resolve(new Response(body.readable, { headers }));
  const fail = (error: unknown): void => void writer.abort(toError(error)).catch(() => {});
  const write = async (bytes: Uint8Array): Promise<void> => {
    if (bytes.length > 0) await writer.write(bytes);
  };
  const event = (data: unknown): Promise<void> => write(new TextEncoder().encode(`data: ${JSON.stringify(data)}\n\n`));
  const end = (last?: Uint8Array): void => {
    if (last) writer.write(last).catch(() => {});
    writer.close().catch(() => {});
  };
  return {
    response,
    outlet: {
      begin,
      write,
      end,
      fail,
      events: {
        begin: (headers) => begin({ ...headers, 'content-type': 'text/event-stream; charset=utf-8' }),
        send: event,
        end,
        fail: async (error) => fail(error),
      },
    },
  };
}
