/** Rate limits of a named key: requests and tokens per minute, and concurrent requests. */
import { HttpError } from '../http/errors.ts';

const MINUTE_MS = 60_000;

/** An entry of the key file, with the key only as its digest. */
export interface KeyRow {
  readonly name: string;
  /** SHA-256 of the key. */
  readonly digest: Buffer;
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
  readonly concurrent?: number;
}

/** A token bucket that holds a minute's worth and refills evenly. Its level may become negative, since a request's tokens are known only afterwards. */
class Bucket {
  #limit: number;
  #level: number;
  #at: number;

  constructor(limit: number, now: number) {
    [this.#limit, this.#level, this.#at] = [limit, limit, now];
  }

  get limit(): number {
    return this.#limit;
  }

  /** Changes the limit. A higher one keeps what was used; a lower one keeps what is left, up to the new limit, so that nothing becomes owed. */
  change(limit: number, now: number): void {
    this.level(now);
    this.#level = limit > this.#limit ? this.#level + limit - this.#limit : Math.min(this.#level, limit);
    this.#limit = limit;
  }

  level(now: number): number {
    this.#level = Math.min(this.#limit, this.#level + ((now - this.#at) * this.#limit) / MINUTE_MS);
    this.#at = now;
    return this.#level;
  }

  take(amount: number, now: number): void {
    this.#level = this.level(now) - amount;
  }

  /** Milliseconds until the level reaches `amount`. */
  wait(amount: number, now: number): number {
    return Math.max(0, ((amount - this.level(now)) * MINUTE_MS) / this.#limit);
  }
}

/** The limits of one key and how much of them is used. */
export class KeyUse {
  readonly name: string;
  #digest: Buffer;
  #concurrent: number | undefined;
  #running = 0;
  #requests: Bucket | undefined;
  #tokens: Bucket | undefined;
  readonly #now: () => number;

  /** `now` is a clock in milliseconds. */
  constructor(row: KeyRow, now = () => performance.now()) {
    this.name = row.name;
    this.#digest = row.digest;
    this.#now = now;
    this.allow(row);
  }

  get digest(): Buffer {
    return this.#digest;
  }

  /** Adopts the key and the limits of a new entry of the same name. */
  allow({ digest, concurrent, requestsPerMinute, tokensPerMinute }: KeyRow): void {
    this.#digest = digest;
    this.#concurrent = concurrent;
    this.#requests = this.#changed(this.#requests, requestsPerMinute);
    this.#tokens = this.#changed(this.#tokens, tokensPerMinute);
  }

  #changed(bucket: Bucket | undefined, limit: number | undefined): Bucket | undefined {
    if (limit === undefined) return undefined;
    bucket?.change(limit, this.#now());
    return bucket ?? new Bucket(limit, this.#now());
  }

  /** Begins a request; throws HttpError 429 if a limit is reached. Call the returned function when the request has ended. */
  enter(): () => void {
    const now = this.#now();
    const [forRequest, forTokens] = [this.#requests?.wait(1, now) ?? 0, this.#tokens?.wait(1, now) ?? 0];
    if (forRequest > 0) throw this.#refusal('requests', `${this.#requests!.limit} requests a minute`, forRequest);
    if (forTokens > 0) throw this.#refusal('tokens', `${this.#tokens!.limit} tokens a minute`, forTokens);
    if (this.#concurrent !== undefined && this.#running >= this.#concurrent) throw this.#refusal('requests', `${this.#concurrent} requests at once`, 1000); // prettier-ignore
    this.#requests?.take(1, now);
    this.#running++;
    let over = false;
    return () => {
      if (!over) this.#running--;
      over = true;
    };
  }

  /** Counts tokens that a request took. */
  charge(tokens: number): void {
    this.#tokens?.take(tokens, this.#now());
  }

  /** OpenAI's x-ratelimit headers, for the limits that the key has. */
  headers(): Readonly<Record<string, string>> {
    const now = this.#now();
    const of = (name: string, bucket: Bucket | undefined) =>
      bucket && {
        [`x-ratelimit-limit-${name}`]: String(bucket.limit),
        [`x-ratelimit-remaining-${name}`]: String(Math.max(0, Math.floor(bucket.level(now)))),
        [`x-ratelimit-reset-${name}`]: duration(bucket.wait(bucket.limit, now)),
      };
    return { ...of('requests', this.#requests), ...of('tokens', this.#tokens) };
  }

  #refusal(type: 'requests' | 'tokens', limit: string, waitMs: number): HttpError {
    const headers = { ...this.headers(), 'retry-after': String(Math.ceil(waitMs / 1000)), 'retry-after-ms': String(Math.ceil(waitMs)) };
    return new HttpError(429, 'rate_limit_exceeded', `the key '${this.name}' may make ${limit}; try again in ${duration(waitMs)}`, {
      type,
      headers,
    });
  }
}

/** Formats a duration as OpenAI does: 6m0s, 1.5s, 20ms. */
function duration(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms)}ms`;
  const seconds = Math.ceil(ms / 100) / 10;
  if (seconds < 60) return `${seconds}s`;
  const whole = Math.ceil(seconds);
  return `${Math.floor(whole / 60)}m${whole % 60}s`;
}
