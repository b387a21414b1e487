/**
 * Memory of uploads: counted as it arrives, shared between addresses, and never filled so far that nobody can finish. An upload that finds no
 * room is not refused. It is read no further until there is some, so its sender waits. Once whole, an upload reserves room for its samples
 * (`reserve`) before it is decoded, and then holds these alone (`settle`).
 */
import { HttpError } from '../http/errors.ts';

/** Bytes an upload is given ahead: what a socket hands over at once. */
const GRANT = 64 << 10;
/** How long uploads are read before all else that came meanwhile has its turn. */
const TURN_MS = 2;

export interface UploadLimits {
  /**
   * Bytes held at once, as uploads in memory and as the samples made of them, which lie in temporary files (in some containers memory too); at
   * least three times what one upload brings.
   */
  readonly maxBytes: number;
  /** Uploads received at once; one address has half of them at most. */
  readonly maxUploads: number;
  /** Slowest an upload may be, in bytes a second, once `graceMs` are over. Time in which it waits for room does not count. */
  readonly minRate: number;
  readonly graceMs: number;
  /** Without bytes for this long, an upload makes room for one that waits. */
  readonly stallMs: number;
}

export const UPLOAD_LIMITS: UploadLimits = { maxBytes: 512 << 20, maxUploads: 1024, minRate: 16 << 10, graceMs: 10_000, stallMs: 2_000 };

/** What the budget tells the reader of an upload. */
export interface UploadReader {
  /** Read no further for now. */
  pause(): void;
  /** There is room again, or it is its turn: go on reading. */
  resume(): void;
  /** The upload is given up. */
  stop(error: HttpError): void;
}

/** What the uploads of one address hold together. */
interface Pool {
  held: number;
  /** Open uploads, whole or not. */
  uploads: number;
  /** Uploads that have room for their samples, and so are decoded or transcribed. */
  reserved: number;
}

export class UploadBudget {
  readonly limits: UploadLimits;
  readonly #uploads = new Set<Upload>();
  readonly #pools = new Map<string, Pool>();
  /** Whole uploads that wait for room for their samples, first come, first served. */
  readonly #reserving: { readonly upload: Upload; readonly bytes: number; readonly start: () => void }[] = [];
  readonly #now: () => number;
  #sweeper: NodeJS.Timeout | undefined;
  /** When the event loop, in its present round, began to read uploads. */
  #turnSince: number | undefined;
  #turnIsOver = false;

  /** `now` = a clock in milliseconds. */
  constructor(limits: Partial<UploadLimits> = {}, now: () => number = () => performance.now()) {
    this.limits = { ...UPLOAD_LIMITS, ...limits };
    this.#now = now;
  }

  /** Bytes held now. */
  get held(): number {
    return sum([...this.#uploads], (upload) => upload.held);
  }

  /**
   * Begins an upload of at most `size` bytes, which may have to wait before its first; throws HttpError 503 when there are too many. Whoever
   * opens it closes it.
   */
  open(address: string, size: number, reader: UploadReader): Upload {
    const key = networkOf(address);
    const pool = this.#pools.get(key) ?? { held: 0, uploads: 0, reserved: 0 };
    const isFull = (): boolean => {
      const receiving = this.#receiving();
      const { maxUploads } = this.limits;
      return receiving.length >= maxUploads || receiving.filter((upload) => upload.pool === pool).length >= maxUploads / 2;
    };
    if (isFull()) this.#giveUpIdle(() => true);
    if (isFull()) throw tooMany();
    this.#pools.set(key, pool);
    pool.uploads++;
    const upload = new Upload(this, pool, size, reader, this.#now());
    this.#uploads.add(upload);
    this.#goOn(upload);
    // After the sockets were read: bytes that wait there are no silence.
    const sweep = (): unknown => setImmediate(() => this.sweep());
    this.#sweeper ??= setInterval(sweep, Math.min(this.limits.stallMs, this.limits.graceMs) / 2).unref();
    return upload;
  }

  /** Ends uploads that are too slow, and idle ones while others wait; runs by itself while there are uploads. */
  sweep(): void {
    const now = this.#now();
    const { graceMs, minRate } = this.limits;
    for (const upload of this.#receiving()) {
      if (upload.waiting || now - upload.readFrom <= graceMs + (upload.received / minRate) * 1000) continue;
      const message = `the upload came slower than ${minRate} bytes a second`;
      upload.reader.stop(new HttpError(408, 'request_timeout', message, { type: 'timeout_error' }));
      upload.close();
    }
    for (;;) {
      const waiting = this.#receiving().filter((upload) => upload.waiting);
      const helps = (idle: Upload): boolean => waiting.some(({ pool, waitsForAll }) => waitsForAll || pool === idle.pool);
      if (!this.#giveUpIdle(helps)) return;
    }
  }

  /** @internal Counts bytes that came; whether the upload may go on. */
  take(upload: Upload, bytes: number): boolean {
    // What still comes of an upload that was given up is not kept.
    if (!this.#uploads.has(upload)) return false;
    upload.received += bytes;
    upload.credit -= bytes;
    upload.lastByte = this.#now();
    if (upload.credit < 0) this.#hold(upload, -upload.credit);
    upload.credit = Math.max(0, upload.credit);
    this.#goOn(upload);
    this.#spendTurn();
    return !upload.waiting;
  }

  /** @internal The body is whole. */
  completed(upload: Upload): void {
    this.#lend(upload, -upload.credit);
    upload.whole = true;
    upload.waiting = false;
    this.#serve();
  }

  /** @internal Waits for room for samples beside the upload's bytes. */
  async reserve(upload: Upload, bytes: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const entry = { upload, bytes, start: resolve };
      this.#reserving.push(entry);
      signal.addEventListener('abort', () => {
        const at = this.#reserving.indexOf(entry);
        if (at >= 0) this.#reserving.splice(at, 1);
        reject(signal.reason instanceof Error ? signal.reason : new Error('the upload was aborted'));
      });
      this.#serve();
    });
  }

  /** @internal The upload now holds these bytes of samples and nothing else. */
  settle(upload: Upload, bytes: number): void {
    this.#hold(upload, bytes - upload.held);
    this.#serve();
  }

  /** @internal */
  closed(upload: Upload): void {
    if (!this.#uploads.delete(upload)) return;
    upload.pool.held -= upload.held;
    upload.pool.uploads--;
    if (upload.reserved) upload.pool.reserved--;
    for (const [key, pool] of this.#pools) if (pool.uploads === 0) this.#pools.delete(key);
    if (this.#uploads.size === 0) {
      clearInterval(this.#sweeper);
      this.#sweeper = undefined;
    }
    this.#serve();
  }

  /** Half is for samples, which may take more bytes than the file they are made of. */
  get #receiveLimit(): number {
    return this.limits.maxBytes / 2;
  }

  /** What one address holds at most, so that a quarter of the room for uploads is always others'. */
  get #share(): number {
    return (this.limits.maxBytes / 8) * 3;
  }

  #receiving(): Upload[] {
    return [...this.#uploads].filter((upload) => !upload.whole);
  }

  /** Once uploads have had their time in a round of the event loop, none is read until the next: a round would else read a piece of each, however many there are. */
  #spendTurn(): void {
    const now = this.#now();
    if (this.#turnSince === undefined) {
      this.#turnSince = now;
      setImmediate(() => this.#endTurn());
    } else if (!this.#turnIsOver && now - this.#turnSince >= TURN_MS) {
      this.#turnIsOver = true;
      for (const { reader } of this.#receiving()) reader.pause();
    }
  }

  #endTurn(): void {
    const wasOver = this.#turnIsOver;
    this.#turnSince = undefined;
    this.#turnIsOver = false;
    if (!wasOver) return;
    // They are read in the order in which they are resumed.
    const next = this.#receiving().filter(({ waiting }) => !waiting);
    for (const { reader } of next.sort((a, b) => a.lastByte - b.lastByte)) reader.resume();
  }

  #hold(upload: Upload, bytes: number): void {
    upload.held += bytes;
    upload.pool.held += bytes;
  }

  #goOn(upload: Upload): void {
    upload.waiting = !this.#grant(upload);
    if (upload.waiting) upload.waitingSince = this.#now();
  }

  /** Gives an upload the room for its next bytes, if every upload can still be received in some order afterwards. */
  #grant(upload: Upload): boolean {
    const bytes = grantOf(upload);
    if (bytes <= 0) return true;
    this.#lend(upload, bytes);
    const receiving = this.#receiving();
    const beside = receiving.filter(({ pool }) => pool === upload.pool);
    upload.waitsForAll = this.held > this.#receiveLimit || !canFinish(receiving, this.#receiveLimit);
    const safe = !upload.waitsForAll && upload.pool.held <= this.#share && canFinish(beside, this.#share);
    if (!safe) this.#lend(upload, -bytes);
    return safe;
  }

  #lend(upload: Upload, bytes: number): void {
    upload.credit += bytes;
    this.#hold(upload, bytes);
  }

  /** Ends the upload that has been without bytes the longest; false if there is none. */
  #giveUpIdle(helps: (upload: Upload) => boolean): boolean {
    const silentSince = this.#now() - this.limits.stallMs;
    const idle = this.#receiving().filter((upload) => !upload.waiting && upload.lastByte <= silentSince && helps(upload));
    const longest = idle.reduce<Upload | undefined>((best, one) => (best && best.lastByte <= one.lastByte ? best : one), undefined);
    if (!longest) return false;
    longest.reader.stop(tooMany());
    longest.close();
    return true;
  }

  /** After room was made: whole uploads get room for their samples first, then those that wait are read on. */
  #serve(): void {
    const { maxBytes } = this.limits;
    for (const entry of [...this.#reserving]) {
      const { upload, bytes, start } = entry;
      const reserved = sum([...this.#pools.values()], (pool) => pool.reserved);
      // One always gets room, however long it is: else nothing would ever be freed.
      if (reserved > 0 && this.held + bytes > maxBytes) break;
      if (upload.pool.reserved > 0 && upload.pool.held + bytes > this.#share) continue;
      this.#reserving.splice(this.#reserving.indexOf(entry), 1);
      upload.reserved = true;
      upload.pool.reserved++;
      this.#hold(upload, bytes);
      start();
    }
    for (const upload of this.#receiving()) {
      if (!upload.waiting || !this.#grant(upload)) continue;
      upload.waiting = false;
      upload.readFrom += this.#now() - upload.waitingSince;
      upload.lastByte = this.#now();
      upload.reader.resume();
    }
  }
}

/** One upload's part of the budget. */
export class Upload {
  readonly pool: Pool;
  readonly size: number;
  readonly reader: UploadReader;
  /** Bytes counted against the budget: received, granted, and samples. */
  held = 0;
  received = 0;
  /** Granted and not yet received. */
  credit = 0;
  whole = false;
  /** Has room for its samples. */
  reserved = false;
  /** Whether it stands still because there is no room, and since when. */
  waiting = false;
  waitingSince = 0;
  /** Whether it waits for what all hold, and not only for its address's share. */
  waitsForAll = false;
  lastByte: number;
  /** When it began, moved on by the time it waited. */
  readFrom: number;
  readonly #budget: UploadBudget;

  constructor(budget: UploadBudget, pool: Pool, size: number, reader: UploadReader, now: number) {
    this.#budget = budget;
    this.pool = pool;
    this.size = size;
    this.reader = reader;
    this.lastByte = now;
    this.readFrom = now;
  }

  /** Counts bytes that came; false = read no further until the reader's resume(). */
  take(bytes: number): boolean {
    return this.#budget.take(this, bytes);
  }

  /** The body has come to its end. */
  complete(): void {
    this.#budget.completed(this);
  }

  /** Resolves when there is room for this many bytes of samples; rejects with the signal's reason. */
  async reserve(bytes: number, signal: AbortSignal): Promise<void> {
    await this.#budget.reserve(this, bytes, signal);
  }

  /** From now on it holds this many bytes: its samples, and no longer the file that they were made of. */
  settle(bytes: number): void {
    this.#budget.settle(this, bytes);
  }

  /** Frees all it holds; harmless when repeated. */
  close(): void {
    this.#budget.closed(this);
  }
}

const tooMany = (): HttpError => new HttpError(503, 'queue_full', 'too many uploads at once', { headers: { 'retry-after': '1' } });

const sum = <T>(items: readonly T[], value: (item: T) => number): number => items.reduce((total, item) => total + value(item), 0);

const needOf = (upload: Upload): number => Math.max(0, upload.size - upload.received - upload.credit);
const grantOf = (upload: Upload): number => Math.min(GRANT, upload.size - upload.received) - upload.credit;

/** Dijkstra's banker: whether there is an order in which each can get all it may still need, from what those before it give back. */
function canFinish(receiving: readonly Upload[], limit: number): boolean {
  let free = limit - sum(receiving, ({ held }) => held);
  if (sum(receiving, needOf) <= free) return true;
  for (const upload of [...receiving].sort((a, b) => needOf(a) - needOf(b))) {
    if (needOf(upload) > free) return false;
    free += upload.held;
  }
  return true;
}

/** What counts as one address: an IPv4 address, however it is written, or an IPv6 network of 64 bits, which one host has to itself. */
function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(':')) return mapped ?? address;
  const [head = '', tail = ''] = address.split('%')[0]!.split('::');
  const [before, after] = [head.split(':').filter(Boolean), tail.split(':').filter(Boolean)];
  const zeros = address.includes('::') ? Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0') : [];
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}
