/**
 * A file server for the built playground, without listeners beside it. It sends what Parley's own server sends with the same files, because it is the
 * same code; only the request id is missing, by which the page knows a Parley server.
 */
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import express from 'express';
import type { Request, Response } from 'express';
import { ListenerContext } from '../../server/listener/context.ts';
import { cors } from '../../server/listener/middleware.ts';
import { playground } from '../../server/listener/playground.ts';
import { FakeEngine } from '../support/fake-engine.ts';

export interface StaticServer {
  readonly url: string;
  /** Paths asked for, in order. */
  readonly requests: string[];
  /** What to answer instead of a file: nine tenths of it, or nothing until this is set again, then the file; set by tests that break or hold a download. */
  intercept: ((path: string) => 'cut' | 'hang' | undefined) | undefined;
  close(): Promise<void>;
}

/** Serves `folder` on a free loopback port. */
export async function serveFolder(folder: string): Promise<StaticServer> {
  const requests: string[] = [];
  const control: { intercept: StaticServer['intercept'] } = { intercept: undefined };
  const hanging: { readonly response: Response; readonly next: () => void }[] = [];
  const app = express().disable('x-powered-by');
  app.use((request: Request, response: Response, next) => {
    const path = decodeURIComponent(request.path);
    requests.push(path);
    const fault = control.intercept?.(path);
    if (fault === 'hang') hanging.push({ response, next });
    else if (fault === 'cut' && existsSync(join(folder, path))) cutShort(join(folder, path), response);
    else next();
  });
  app.use(cors(new ListenerContext('chat', { engine: new FakeEngine(), modelId: 'none' })), playground(folder));
  app.use((_request: Request, response: Response) => void response.status(404).end());
  const server: Server = createServer(app);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://localhost:${port}/`,
    requests,
    get intercept() {
      return control.intercept;
    },
    set intercept(value) {
      control.intercept = value;
      // Not broken: a browser asks again only where the connection had been used before.
      for (const { response, next } of hanging.splice(0)) if (!response.destroyed) next();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Nine tenths of a file, then a broken connection. */
function cutShort(file: string, response: Response): void {
  const { size } = statSync(file);
  response.set({ 'content-type': 'application/octet-stream', 'content-length': String(size) });
  createReadStream(file, { end: Math.floor(size * 0.9) })
    .on('end', () => response.destroy())
    .pipe(response, { end: false });
}
