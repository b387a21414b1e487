/** A hub of its own and an empty cache for each test, and what tests of pulls ask again and again. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect } from 'vitest';
import { SourceError } from '../../sources/index.ts';
import { resolveSource } from '../../sources/node/index.ts';
import type { ResolveOptions, Resolved } from '../../sources/node/index.ts';
import { serveHub } from './hub-server.ts';
import type { HubServer } from './hub-server.ts';

export const ID = 'somebody/llama';
export const TOKEN = 'a-token';

/** Bytes that no two places of a file have in common. */
export function distinctBytes(size: number, seed: string): Buffer {
  const parts = Array.from({ length: Math.ceil(size / 32) }, (_, i) => createHash('sha256').update(`${seed} ${i}`).digest());
  return Buffer.concat(parts).subarray(0, size);
}

export const WEIGHTS = distinctBytes(300_000, 'weights');
export const FILES: ReadonlyMap<string, Buffer> = new Map<string, Buffer>([
  ['README.md', Buffer.from('# a model')],
  ['config.json', Buffer.from('{"model_type":"llama"}')],
  ['tokenizer.json', Buffer.from('{}')],
  ['generation_config.json', Buffer.alloc(0)],
  ['model.safetensors', WEIGHTS],
  ['pytorch_model.bin', distinctBytes(5000, 'pickle')],
]);
/** Those of FILES that a pull fetches. */
export const NEEDED = ['config.json', 'generation_config.json', 'model.safetensors', 'tokenizer.json'];
export const NEEDED_BYTES = NEEDED.reduce((sum, name) => sum + FILES.get(name)!.length, 0);
/** Pieces are small, so that a file has several; nothing waits. */
export const TUNING = { pieceBytes: 32 * 1024, connections: 4, attempts: 3, retryMs: 0, pollMs: 5 };

/** What the machine of the test may have set, for processes that inherit it. */
const UNSET = Object.fromEntries(
  [
    'HF_TOKEN',
    'HUGGING_FACE_HUB_TOKEN',
    'HF_TOKEN_PATH',
    'HF_HUB_CACHE',
    'HUGGINGFACE_HUB_CACHE',
    'HF_HUB_OFFLINE',
    'PARLEY_NO_INSTALL',
  ].map((name) => [name, '']),
);

export interface HubBench {
  readonly hub: HubServer;
  /** HF_HOME. */
  readonly home: string;
  /** Where the cache keeps ID. */
  readonly folder: string;
  env(more?: Readonly<Record<string, string>>): Record<string, string>;
  pull(source?: string, options?: ResolveOptions): Promise<Resolved>;
  /** Names of what was downloaded. */
  fetchedNames(): string[];
}

/** The bench of the running test. */
export function hubBench(): HubBench {
  const root = mkdtempSync(join(tmpdir(), 'parley-hub-'));
  let hub: HubServer;
  let count = 0;
  beforeEach(async () => {
    hub = await serveHub(ID);
    hub.commit(FILES);
    count++;
  });
  afterEach(async () => hub.close());
  afterAll(() => rmSync(root, { recursive: true }));
  const home = (): string => join(root, String(count));
  const env: HubBench['env'] = (more = {}) => ({
    ...UNSET,
    HF_HOME: home(),
    PARLEY_CACHE: join(home(), 'own'),
    HF_ENDPOINT: hub.url,
    ...more,
  });
  return {
    get hub() {
      return hub;
    },
    get home() {
      return home();
    },
    get folder() {
      return join(home(), 'hub', 'models--somebody--llama');
    },
    env,
    pull: (source = ID, options = {}) => resolveSource(source, { env: env(), tuning: TUNING, ...options }),
    fetchedNames: () => [...new Set(hub.downloads.map(({ name }) => name))].sort(),
  };
}

/** The SourceError that work fails with: one line, without the token. */
export async function failure(work: Promise<unknown>): Promise<SourceError> {
  const error: unknown = await work.then(
    () => new Error('it did not fail'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SourceError);
  expect((error as SourceError).message).not.toContain('\n');
  expect((error as SourceError).message).not.toContain(TOKEN);
  return error as SourceError;
}
