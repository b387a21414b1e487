/**
 * A server that speaks the Hugging Face hub's protocol for one repository, or several: their revisions, its tree with git and LFS hashes (page by page), files in
 * LFS behind a redirect to a storage server of another origin, ranges, and the hub's CORS headers and refusals.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, relative, sep } from 'node:path';

export interface TreeEntry {
  readonly type: 'file' | 'directory';
  readonly path: string;
  readonly size: number;
  readonly oid: string;
  readonly lfs?: { readonly oid: string; readonly size: number; readonly pointerSize: number };
}

/** What happens to the bytes of a download: cut at 70 %, cut after so many bytes, one bit turned, or nothing more after 70 %. */
export type Fault = 'cut' | 'corrupt' | 'stall' | number | undefined;

/** What tests set. */
export interface HubRules {
  fault: ((name: string) => Fault) | undefined;
  /** The one token that opens the repository. */
  token: string | undefined;
  /** The token's account has not accepted the terms. */
  gated: boolean;
  /** The listing is open, and the files are for the token alone: as the hub has models with terms. */
  terms: boolean;
  /** Every answer of the hub is this one. */
  status: number | undefined;
  /** The first answers of the hub to paths that hold `to` are 429 with these headers. */
  limit: { count: number; readonly to: string; readonly headers: Readonly<Record<string, string>> } | undefined;
  /** Where the storage is, other than it is. */
  redirect: ((location: string) => string) | undefined;
  /** How many downloads the storage refuses, as it does with addresses that are too old. */
  refusals: number;
  /** Changes the listing of files. */
  listing: ((entries: TreeEntry[]) => unknown[]) | undefined;
  /** The storage gives whole files whatever is asked for. */
  wholeOnly: boolean;
  /** Downloads of the storage wait for this. */
  hold: Promise<void> | undefined;
}

export interface HubServer extends HubRules {
  readonly url: string;
  readonly storage: string;
  /** Downloads asked for, in order: file name, and the range header if there was one. */
  readonly downloads: { readonly name: string; readonly range: string | undefined }[];
  /** Every request: which server, path, and the authorization header. */
  readonly requests: { readonly host: 'hub' | 'storage'; readonly path: string; readonly authorization: string | undefined }[];
  /** Makes a commit of these files, at a branch; returns its hash. */
  commit(files: ReadonlyMap<string, Buffer>, revision?: string): string;
  /** The same in another repository, which has it then; `hash` names the commit. */
  commitTo(id: string, files: ReadonlyMap<string, Buffer>, hash?: string): string;
  close(): Promise<void>;
}

const NOTHING: FakeRepository = { commits: new Map(), refs: new Map() };
/** Entries on one page of a listing. */
const PAGE = 40;
const sha = (kind: 'sha1' | 'sha256', ...parts: (string | Buffer)[]): string =>
  parts.reduce((hash, part) => hash.update(part), createHash(kind)).digest('hex');

/** Serves the checkpoint in `folder`, or nothing yet, as the repository `id`. */
export async function serveHub(id: string, folder?: string): Promise<HubServer> {
  const repositories = new Map<string, FakeRepository>([[id, { commits: new Map(), refs: new Map() }]]);
  const contents = new Map<string, Buffer>();
  const rules: HubRules = {
    fault: undefined,
    token: undefined,
    gated: false,
    terms: false,
    status: undefined,
    limit: undefined,
    redirect: undefined,
    refusals: 0,
    listing: undefined,
    wholeOnly: false,
    hold: undefined,
  };
  const state = {
    repositories,
    contents,
    rules,
    downloads: [] as HubServer['downloads'],
    requests: [] as HubServer['requests'],
    storage: '',
    url: '',
  };
  const hub = createServer((request, response) => answerHub(state, request, response));
  const storage = createServer((request, response) => void answerStorage(state, request, response));
  [state.url, state.storage] = await Promise.all([listening(hub), listening(storage)]);
  const add = (to: string, files: ReadonlyMap<string, Buffer>, revision: string, name?: string): string => {
    const hash = name ?? sha('sha1', ...[...files].flatMap(([path, content]) => [path, sha('sha256', content)]));
    const repository = repositories.get(to) ?? { commits: new Map(), refs: new Map() };
    repository.commits.set(hash, files);
    repository.refs.set(revision, hash);
    repositories.set(to, repository);
    for (const content of files.values()) contents.set(sha('sha256', content), content);
    return hash;
  };
  const commit: HubServer['commit'] = (files, revision = 'main') => add(id, files, revision);
  const commitTo: HubServer['commitTo'] = (to, files, hash) => add(to, files, 'main', hash);
  if (folder !== undefined && existsSync(folder)) commit(filesOf(folder));
  const { url, storage: storageUrl, downloads, requests } = state;
  const close = async (): Promise<void> => void (await Promise.all([closed(hub), closed(storage)]));
  return Object.assign(rules, { url, storage: storageUrl, downloads, requests, commit, commitTo, close });
}

interface FakeRepository {
  readonly commits: Map<string, ReadonlyMap<string, Buffer>>;
  readonly refs: Map<string, string>;
}

interface State {
  readonly repositories: ReadonlyMap<string, FakeRepository>;
  readonly contents: ReadonlyMap<string, Buffer>;
  readonly rules: HubRules;
  readonly downloads: HubServer['downloads'];
  readonly requests: HubServer['requests'];
  readonly url: string;
  readonly storage: string;
}

function filesOf(folder: string): Map<string, Buffer> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map((entry) => join(entry.parentPath, entry.name));
  return new Map(paths.map((path) => [relative(folder, path).split(sep).join('/'), readFileSync(path)]));
}

const listening = (server: Server): Promise<string> =>
  new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)));

const closed = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });

function withCors(request: IncomingMessage, response: ServerResponse): boolean {
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader(
    'access-control-expose-headers',
    'ETag, Link, X-Repo-Commit, X-Linked-Size, X-Linked-ETag, X-Error-Code, Content-Range',
  );
  if (request.method === 'OPTIONS') response.writeHead(204, { 'access-control-allow-headers': 'authorization, range' }).end();
  return request.method !== 'OPTIONS';
}

const json = (response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}): void =>
  void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));

const refuse = (response: ServerResponse, status: number, code: string, error: string): void =>
  json(response, status, { error }, { 'x-error-code': code, 'x-error-message': error });

function answerHub(state: State, request: IncomingMessage, response: ServerResponse): void {
  if (!withCors(request, response)) return;
  const { rules, repositories } = state;
  const url = new URL(request.url!, state.url);
  const path = decodeURIComponent(url.pathname);
  const { authorization } = request.headers;
  state.requests.push({ host: 'hub', path, authorization });
  if (rules.limit && path.includes(rules.limit.to) && rules.limit.count-- > 0) return json(response, 429, {}, rules.limit.headers);
  if (rules.status !== undefined) return refuse(response, rules.status, '', 'the hub is being mended');
  const [, api, asked = '', rest = ''] = /^\/(api\/models\/)?([^/]+\/[^/]+)(.*)$/.exec(path) ?? [];
  const found = repositories.get(asked);
  const [id, { refs, commits }] = [asked, found ?? NOTHING];
  const isKnown = rules.token === undefined || authorization === `Bearer ${rules.token}`;
  const isOpen = isKnown || (rules.terms && api !== undefined);
  if (!found || (rest === '' && api === undefined))
    return refuse(response, authorization ? 404 : 401, 'RepoNotFound', 'Repository not found');
  if (!isOpen && rules.terms && !authorization)
    return refuse(response, 401, 'GatedRepo', `Access to model ${id} is restricted. You must have access to it and be authenticated.`);
  if (!isOpen) return refuse(response, 401, authorization ? '' : 'RepoNotFound', 'Invalid username or password.');
  if (rules.gated) return refuse(response, 403, 'GatedRepo', `Access to model ${id} is restricted and you are not in the authorized list.`);
  const [, what = '', revision = 'main', file = ''] = /^\/(revision|tree|resolve)\/((?:refs\/pr\/)?[^/]+)\/?(.*)$/.exec(rest) ?? [];
  const commit = commits.has(revision) ? revision : refs.get(revision === 'HEAD' ? 'main' : revision);
  if (commit === undefined) return refuse(response, 404, 'RevisionNotFound', `Invalid rev id: ${revision}`);
  const files = commits.get(commit)!;
  if (api !== undefined && what === 'tree') return answerTree(state, url, files, response);
  if (api !== undefined)
    return json(response, 200, {
      _id: '0',
      id,
      sha: commit,
      private: false,
      gated: false,
      lastModified: '2026-11-23T00:00:00.000Z',
      siblings: [],
    });
  const content = files.get(file);
  if (content === undefined) return refuse(response, 404, 'EntryNotFound', 'Entry not found');
  const { lfs, oid, size } = treeEntry([file, content]);
  const headers = { 'x-repo-commit': commit, 'x-linked-size': size, 'x-linked-etag': `"${lfs?.oid ?? oid}"` };
  // Small files come from the hub itself, by way of another path.
  const base = lfs ? state.storage : state.url;
  if (!url.searchParams.has('here')) {
    const location = lfs
      ? `${base}/lfs/${lfs.oid}?name=${encodeURIComponent(file)}`
      : `/${id}/resolve/${commit}/${encodeURIComponent(file)}?here`;
    return void response.writeHead(lfs ? 302 : 307, { ...headers, location: rules.redirect?.(location) ?? location }).end();
  }
  send(state, file, content, request, response, headers);
}

/** A page of the listing, with a link to the next one. */
function answerTree({ rules, url: base }: State, url: URL, files: ReadonlyMap<string, Buffer>, response: ServerResponse): void {
  const all = [...files].map(treeEntry);
  const isRecursive = url.searchParams.get('recursive') === 'true';
  const entries = isRecursive ? all : all.filter(({ path }) => !path.includes('/'));
  const from = Number(url.searchParams.get('cursor') ?? 0);
  url.searchParams.set('cursor', String(from + PAGE));
  const more = from + PAGE < entries.length ? { link: `<${base}${url.pathname}${url.search}>; rel="next"` } : undefined;
  json(response, 200, rules.listing ? rules.listing(entries) : entries.slice(from, from + PAGE), rules.listing ? {} : more);
}

async function answerStorage(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (!withCors(request, response)) return;
  const url = new URL(request.url!, state.storage);
  state.requests.push({ host: 'storage', path: url.pathname, authorization: request.headers.authorization });
  const content = state.contents.get(url.pathname.replace('/lfs/', ''));
  await state.rules.hold;
  if (content === undefined || state.rules.refusals-- > 0) return void response.writeHead(403).end();
  send(state, url.searchParams.get('name') ?? '', content, request, response, {});
}

/** The bytes that were asked for, with what the test wants to happen to them. */
function send(
  { rules, downloads }: State,
  name: string,
  content: Buffer,
  request: IncomingMessage,
  response: ServerResponse,
  headers: Record<string, string | number>,
): void {
  const range = rules.wholeOnly ? undefined : request.headers.range;
  downloads.push({ name, range: request.headers.range });
  const [, from = '0', to = ''] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
  const end = to === '' ? content.length : Math.min(content.length, Number(to) + 1);
  const bytes = Buffer.from(content.subarray(Number(from), end));
  const fault = rules.fault?.(name);
  if (fault === 'corrupt') bytes[bytes.length >> 1]! ^= 1;
  response.writeHead(range ? 206 : 200, {
    ...headers,
    'content-type': 'application/octet-stream',
    'content-length': bytes.length,
    ...(!rules.wholeOnly && { 'accept-ranges': 'bytes' }),
    ...(range && { 'content-range': `bytes ${from}-${end - 1}/${content.length}` }),
  });
  const kept =
    fault === 'cut' || fault === 'stall'
      ? Math.floor(bytes.length * 0.7)
      : typeof fault === 'number'
        ? Math.min(fault, bytes.length)
        : undefined;
  if (kept === undefined) response.end(bytes);
  else response.write(bytes.subarray(0, kept), () => void (fault === 'stall' || response.destroy()));
}

const treeEntries = new WeakMap<Buffer, Map<string, TreeEntry>>();

/** The entry of a file; hashing it once is enough. */
function treeEntry([path, content]: readonly [string, Buffer]): TreeEntry {
  const known = treeEntries.get(content) ?? new Map<string, TreeEntry>();
  const entry = known.get(path) ?? makeEntry(path, content);
  treeEntries.set(content, known.set(path, entry));
  return entry;
}

/** The hub keeps weights in LFS: git then holds a pointer, and `lfs.oid` is the SHA-256 of the content. */
function makeEntry(path: string, content: Buffer): TreeEntry {
  const git = (bytes: Buffer): string => sha('sha1', `blob ${bytes.length}\0`, bytes);
  const { length: size } = content;
  if (!/\.(safetensors|gguf|bin|onnx|pth|pt)$/.test(path)) return { type: 'file', path, size, oid: git(content) };
  const oid = sha('sha256', content);
  const pointer = Buffer.from(`version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${size}\n`);
  return { type: 'file', path, size, oid: git(pointer), lfs: { oid, size, pointerSize: pointer.length } };
}
