/**
 * A server that speaks the Hugging Face hub's protocol for one repository: its commit, its tree with git and LFS hashes, files behind a redirect to
 * another path with ranges, all with the hub's CORS headers.
 */
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

const COMMIT = createHash('sha1').update('a commit').digest('hex');

export interface HubServer {
  readonly url: string;
  /** Downloads asked for, in order: file name, and the range header if there was one. */
  readonly downloads: { readonly name: string; readonly range: string | undefined }[];
  /** What happens to the bytes of a download; set by tests. */
  fault: ((name: string) => 'cut' | 'corrupt' | undefined) | undefined;
  close(): Promise<void>;
}

/** Serves the checkpoint in `folder` as the repository `id`. */
export async function serveHub(id: string, folder: string): Promise<HubServer> {
  const files = new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
  const downloads: HubServer['downloads'] = [];
  const control: { fault: HubServer['fault'] } = { fault: undefined };
  const json = (response: ServerResponse, status: number, value: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  };
  const download = (name: string, request: IncomingMessage, response: ServerResponse): void => {
    const content = files.get(name)!;
    const { range } = request.headers;
    downloads.push({ name, range });
    const [, from = '0', to = ''] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
    const end = to === '' ? content.length : Number(to) + 1;
    const bytes = Buffer.from(content.subarray(Number(from), end));
    const fault = control.fault?.(name);
    if (fault === 'corrupt') bytes[bytes.length >> 1]! ^= 1;
    response.writeHead(range ? 206 : 200, {
      'content-type': 'application/octet-stream',
      'content-length': bytes.length,
      'accept-ranges': 'bytes',
      ...(range && { 'content-range': `bytes ${from}-${end - 1}/${content.length}` }),
    });
    if (fault === 'cut') response.write(bytes.subarray(0, Math.floor(bytes.length * 0.7)), () => response.destroy());
    else response.end(bytes);
  };
  const server = createServer((request, response) => {
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('access-control-expose-headers', 'ETag, X-Repo-Commit, X-Linked-Size, X-Linked-ETag, Content-Range');
    if (request.method === 'OPTIONS') {
      response.writeHead(204, { 'access-control-allow-headers': 'range' }).end();
      return;
    }
    const path = decodeURIComponent(new URL(request.url!, 'http://x').pathname);
    const resolved = `/${id}/resolve/${COMMIT}/`;
    const name = path.slice(path.lastIndexOf('/') + 1);
    if (path === `/api/models/${id}`) json(response, 200, { id, sha: COMMIT, private: false, gated: false });
    else if (path === `/api/models/${id}/tree/${COMMIT}`) json(response, 200, [...files].map(treeEntry));
    else if (path.startsWith('/api/')) json(response, 401, { error: 'Invalid username or password.' });
    else if (path.startsWith(resolved) && files.has(name)) {
      const { lfs, oid, size } = treeEntry([name, files.get(name)!]);
      const headers = { 'x-repo-commit': COMMIT, 'x-linked-size': size, 'x-linked-etag': `"${lfs?.oid ?? oid}"` };
      response.writeHead(302, { ...headers, location: `/cdn/${encodeURIComponent(name)}` }).end();
    } else if (path.startsWith('/cdn/') && files.has(name)) download(name, request, response);
    else json(response, 404, { error: 'Entry not found' });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    downloads,
    get fault() {
      return control.fault;
    },
    set fault(value) {
      control.fault = value;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface TreeEntry {
  readonly type: 'file';
  readonly path: string;
  readonly size: number;
  readonly oid: string;
  readonly lfs?: { readonly oid: string; readonly size: number; readonly pointerSize: number };
}

/** The hub keeps safetensors in LFS: git then holds a pointer, and `lfs.oid` is the SHA-256 of the content. */
function treeEntry([path, content]: readonly [string, Buffer]): TreeEntry {
  const git = (bytes: Buffer): string => createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
  const { length: size } = content;
  if (!path.endsWith('.safetensors')) return { type: 'file', path, size, oid: git(content) };
  const sha256 = createHash('sha256').update(content).digest('hex');
  const pointer = Buffer.from(`version https://git-lfs.github.com/spec/v1\noid sha256:${sha256}\nsize ${size}\n`);
  return { type: 'file', path, size, oid: git(pointer), lfs: { oid: sha256, size, pointerSize: pointer.length } };
}
