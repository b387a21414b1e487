/** The key file (--api-keys): named keys with rate limits. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { KeyUse } from './limits.ts';
import type { KeyRow } from './limits.ts';

/** What a key must be so that an HTTP header can carry it: white space at a header's ends is stripped, and clients encode other characters differently. */
export const SENDABLE = 'a key is printable ASCII without white space at its ends (a line break of a file that it was read from, perhaps)';
export const isSendable = (key: string): boolean => /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(key);

const count = z.number().int().min(1).optional();

const KEY_ROW = z
  .strictObject({
    name: z.string().min(1).max(100),
    key: z.string().min(1).refine(isSendable, SENDABLE).optional(), // prettier-ignore
    key_sha256: z.string().regex(/^[0-9a-fA-F]{64}$/, 'expected 64 hexadecimal digits').optional(), // prettier-ignore
    requests_per_minute: count,
    tokens_per_minute: count,
    concurrent: count,
  })
  .refine(({ key, key_sha256: hash }) => (key === undefined) !== (hash === undefined), {
    message: "expected 'key' or 'key_sha256', and not both",
  });

const KEY_FILE = z.strictObject({ keys: z.array(KEY_ROW).min(1) });

export const digestOf = (key: string): Buffer => createHash('sha256').update(key).digest();

/** Parses the text of a key file; throws an Error of one sentence, which never quotes a key. */
export function parseKeys(text: string): readonly KeyRow[] {
  const { success, data, error } = KEY_FILE.safeParse(parsed(text));
  if (!success) {
    const [issue] = error.issues;
    throw new Error(`${issue!.path.length > 0 ? `'${issue!.path.join('.')}': ` : ''}${issue!.message}`);
  }
  const rows = data.keys.map((row) => ({
    name: row.name,
    digest: row.key === undefined ? Buffer.from(row.key_sha256!, 'hex') : digestOf(row.key),
    ...(row.requests_per_minute !== undefined && { requestsPerMinute: row.requests_per_minute }),
    ...(row.tokens_per_minute !== undefined && { tokensPerMinute: row.tokens_per_minute }),
    ...(row.concurrent !== undefined && { concurrent: row.concurrent }),
  }));
  rows.forEach((row, index) => {
    const same = rows.slice(0, index).find(({ name, digest }) => name === row.name || digest.equals(row.digest));
    if (same) throw new Error(`'keys.${index}': '${row.name}' has the name or the key of '${same.name}'; each needs its own`);
  });
  return rows;
}

/** Reads and parses a key file; throws an Error of one sentence that begins with the setting's name, as `called` words it. */
export function readKeys(
  path: string,
  read: (path: string) => string,
  called: (key: 'apiKeys', path: string) => string,
): readonly KeyRow[] {
  try {
    return parseKeys(read(path));
  } catch (error) {
    throw new Error(`${called('apiKeys', path)}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // JSON.parse's own message quotes the text, and so perhaps a key.
    throw new Error('it is not valid JSON');
  }
}

/** The keys in use, shared by the listeners. */
export class KeyRing {
  #uses: readonly KeyUse[];

  constructor(rows: readonly KeyRow[]) {
    this.#uses = rows.map((row) => new KeyUse(row));
  }

  /** Replaces the keys. A name that stays keeps what is left of its limits. */
  replace(rows: readonly KeyRow[]): void {
    const before = new Map(this.#uses.map((use) => [use.name, use]));
    this.#uses = rows.map((row) => {
      const use = before.get(row.name);
      use?.allow(row);
      return use ?? new KeyUse(row);
    });
  }

  /** The use of a key; undefined if it is unknown. Every key is compared, in constant time, so that timing reveals nothing. */
  find(key: string): KeyUse | undefined {
    const digest = digestOf(key);
    return this.#uses.filter((use) => timingSafeEqual(use.digest, digest))[0];
  }
}
