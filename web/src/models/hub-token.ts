/**
 * The person's token for a hub, for models that are private or have terms to accept. It belongs to the origin that it was given for, is
 * sent nowhere else, and is forgotten with the page unless the person wants it kept. The browser follows redirects, and drops the token
 * where they lead to another origin.
 */
import { signal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import { SourceError, isLoopback, isToken } from '../../../sources/index.ts';
import { originOf } from './hub-authorization.ts';
import type { HubAccess } from './hub-authorization.ts';

const KEY = 'parley.hub-token.1';

export class HubToken {
  readonly #given: Signal<HubAccess | undefined>;
  readonly #isKept: Signal<boolean>;
  readonly #storage: Storage | undefined;

  constructor(storage: Storage | undefined) {
    this.#storage = storage;
    const kept = parseAccess(storage?.getItem(KEY));
    this.#given = signal(kept);
    this.#isKept = signal(kept !== undefined);
  }

  /** Whether the token is kept beyond this visit. */
  get isKept(): boolean {
    return this.#isKept.value;
  }

  /** Returns the token for the hub at this address; undefined if none was given, or one for another hub. */
  access(hub: string): HubAccess | undefined {
    const given = this.#given.value;
    return given?.origin === originOf(hub) ? given : undefined;
  }

  /**
   * Sets the token for a hub; an empty text forgets it. Throws SourceError if the text cannot be a token, or if it would be sent
   * unencrypted.
   */
  give(hub: string, token: string): void {
    if (token === '') return this.#set(undefined);
    const origin = originOf(hub);
    if (origin === undefined) throw new SourceError('syntax', `${hub} is no address of a hub`);
    if (!isPrivate(new URL(origin)))
      throw new SourceError('refused', `${origin} would be sent the token without encryption; a token goes to https, or to this machine`);
    if (!isToken(token)) throw new SourceError('syntax', 'this is no token: it has spaces or other characters that no token has');
    this.#set({ origin, token });
  }

  /** Keeps the token in this browser until it is removed, or only as long as the page. */
  keep(isKept: boolean): void {
    this.#isKept.value = isKept;
    this.#set(this.#given.peek());
  }

  #set(access: HubAccess | undefined): void {
    this.#given.value = access;
    try {
      if (access && this.#isKept.peek()) this.#storage?.setItem(KEY, JSON.stringify(access));
      else this.#storage?.removeItem(KEY);
    } catch {
      // If localStorage is full or forbidden, the token lasts for this visit only.
    }
  }
}

const isPrivate = ({ protocol, hostname }: URL): boolean => protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));

function parseAccess(text: string | null | undefined): HubAccess | undefined {
  try {
    const { origin, token } = JSON.parse(text ?? 'null') as Partial<Record<keyof HubAccess, unknown>>;
    return typeof origin === 'string' && typeof token === 'string' && isToken(token) ? { origin, token } : undefined;
  } catch {
    return undefined;
  }
}
