/** The plainest possible file server for the built playground: no headers but the type, no ranges, 404 for what is missing. */
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize, sep } from 'node:path';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
  '.webmanifest': 'application/manifest+json',
};

export interface StaticServer {
  readonly url: string;
  /** Paths asked for, in order. */
  readonly requests: string[];
  /** What to answer instead of a file: nine tenths of it, or nothing until this is set again; set by tests that break a download. */
  intercept: ((path: string) => 'cut' | 'hang' | undefined) | undefined;
  close(): Promise<void>;
}

/** Serves `folder` on a free loopback port. */
export async function serveFolder(folder: string): Promise<StaticServer> {
  const requests: string[] = [];
  const control: { intercept: StaticServer['intercept'] } = { intercept: undefined };
  const hanging: ServerResponse[] = [];
  const server: Server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url!, 'http://x').pathname);
    requests.push(path);
    const file = join(folder, normalize(path.endsWith('/') ? `${path}index.html` : path));
    if (!file.startsWith(folder + sep) || !existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end();
      return;
    }
    const fault = control.intercept?.(path);
    if (fault === 'hang') {
      hanging.push(response);
      return;
    }
    const { size } = statSync(file);
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream', 'content-length': size });
    if (fault !== 'cut') {
      createReadStream(file).pipe(response);
      return;
    }
    createReadStream(file, { end: Math.floor(size * 0.9) })
      .on('end', () => response.destroy())
      .pipe(response, { end: false });
  });
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
      for (const response of hanging.splice(0)) response.destroy();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
