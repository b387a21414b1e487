/** Reads folders and servers from the environment variables of Hugging Face's own tools, and from our own. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { SourceError } from '../errors.ts';
import { isToken } from '../names.ts';
import { isLoopback } from '../source.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where models are cached, and the hub that they are fetched from. */
export interface SourceSettings {
  /** Folder of models--owner--name folders, shared with Hugging Face's tools. */
  readonly hubCache: string;
  /** Folder of models from packages and URLs. */
  readonly ownCache: string;
  /** The hub's URL without a slash at the end. */
  readonly endpoint: string;
  readonly token?: string;
  /** The variable that forbids fetching; undefined if none does. */
  readonly offline?: string;
}

/** Folder of Parley's own cache. For callers that need no other of these settings, so that a wrong token or URL does not matter to them. */
export function ownCacheFolder(env: Environment): string {
  return expand(set(env['PARLEY_CACHE']) ?? join(cachesFolder(env), 'parley'));
}

/** The user's home folder. In a container that runs as a number without a user, and without HOME, there is none: the root is used, as by Docker. */
export function homeFolder(find = homedir): string {
  try {
    return find();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SYSTEM_ERROR') throw error;
    return '/';
  }
}

/**
 * Reads the settings from HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH, HF_HUB_OFFLINE, XDG_CACHE_HOME, PARLEY_CACHE and PARLEY_NO_INSTALL; throws
 * SourceError('syntax').
 */
export function sourceSettings(env: Environment): SourceSettings {
  const home = expand(set(env['HF_HOME']) ?? join(cachesFolder(env), 'huggingface'));
  const token = readToken(env, home);
  const offline = ['HF_HUB_OFFLINE', 'PARLEY_NO_INSTALL'].find((name) => isOn(env[name]));
  return {
    hubCache: expand(set(env['HF_HUB_CACHE']) ?? set(env['HUGGINGFACE_HUB_CACHE']) ?? join(home, 'hub')),
    ownCache: ownCacheFolder(env),
    endpoint: readEndpoint(set(env['HF_ENDPOINT']) ?? 'https://huggingface.co'),
    ...(token !== undefined && { token }),
    ...(offline !== undefined && { offline }),
  };
}

const set = (value: string | undefined): string | undefined => (value === undefined || value.trim() === '' ? undefined : value.trim());
const cachesFolder = (env: Environment): string => set(env['XDG_CACHE_HOME']) ?? join(homeFolder(), '.cache');
const isOn = (value: string | undefined): boolean => ['1', 'on', 'yes', 'true'].includes((value ?? '').toLowerCase());
/** Resolves a folder's path, with ~ as no shell has expanded it. */
const expand = (path: string): string => resolve(path.replace(/^~(?=\/|$)/, () => homeFolder()));

function readEndpoint(text: string): string {
  const refuse = (why: string): SourceError => new SourceError('syntax', `HF_ENDPOINT is ${JSON.stringify(text)}: ${why}`);
  // A URL with a line break or a blank inside would be accepted without it.
  if (/[\s\p{Cc}]/u.test(text)) throw refuse('an address has no blanks and no line breaks');
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw refuse('expected an address, such as https://huggingface.co');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw refuse('expected an address without name, password, ? and #');
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname)))
    throw refuse('must be https; http only on this machine');
  return url.href.replace(/\/+$/, '');
}

/** The environment's token, else the one that `hf auth login` has stored. */
function readToken(env: Environment, home: string): string | undefined {
  const given = set(env['HF_TOKEN']) ?? set(env['HUGGING_FACE_HUB_TOKEN']);
  if (given !== undefined) return checkToken(given, 'HF_TOKEN');
  if (isOn(env['HF_HUB_DISABLE_IMPLICIT_TOKEN'])) return undefined;
  const path = expand(set(env['HF_TOKEN_PATH']) ?? join(home, 'token'));
  let stored: string | undefined;
  try {
    stored = set(readFileSync(path, 'utf8'));
  } catch {
    return undefined; // not logged in
  }
  return stored === undefined ? undefined : checkToken(stored, path);
}

function checkToken(token: string, where: string): string {
  if (!isToken(token)) throw new SourceError('syntax', `${where} holds no token: it has spaces or other characters that no token has`);
  return token;
}
