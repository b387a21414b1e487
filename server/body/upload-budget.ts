/**
 * Memory budget of uploads: bytes are counted as they arrive, shared between addresses, and never granted such that no upload could finish. An upload without room
 * is not refused but paused, so its sender waits. Once complete, an upload reserves room for its samples (`reserve`) before it is decoded, and then holds these
 * alone (`settle`).
 */
import { HttpError } from '../http/errors.ts';

/** Bytes granted ahead to an upload: what a socket delivers at once. */
const GRANT = 64 << 10;
/** Milliseconds of reading uploads after which everything else that arrived has its turn. */
const TURN_MS = 2;

/** Limits of an UploadBudget. */
export interface UploadLimits {
  /**
   * Most bytes held at once: uploads in memory, and the samples made of them in temporary files (in some containers memory too). At least three times the largest
   * upload.
   */
  readonly maxBytes: number;
  /** Most uploads received at once; one address may have half of them. */
  readonly maxUploads: number;
  /** Slowest rate of an upload in bytes per second, after `graceMs`. Time in which it waits for room does not count. */
  readonly minRate: number;
  readonly graceMs: number;
  /** Milliseconds without bytes after which an upload may be ended to make room for one that waits. */
  readonly stallMs: number;
}

/** Default limits. */
export const UPLOAD_LIMITS: UploadLimits = { maxBytes: 512 << 20, maxUploads: 1024, minRate: 16 << 10, graceMs: 10_000, stallMs: 2_000 };

/** How the budget controls the reader of an upload. */
export interface UploadReader {
  /** Stops reading for now. */
  pause(): void;
  /** Continues reading: there is room again, or it is the upload's turn. */
  resume(): void;
  /** Gives the upload up. */
  stop(error: HttpError): void;
}

/** Totals of the uploads of one address. */
interface Pool {
  held: number;
  /** Number of open uploads, complete or not. */
  uploads: number;
  /** Number of uploads that have room for their samples, and so are decoded or transcribed. */
  reserved: number;
}

/** The memory budget that concurrent uploads share. */
export class UploadBudget {
  readonly limits: UploadLimits;
  readonly #uploads = new Set<Upload>();
  readonly #pools = new Map<string, Pool>();
  /** Complete uploads that wait for room for their samples, first come, first served. */
  readonly #reserving: { readonly upload: Upload; readonly bytes: number; readonly start: () => void }[] = [];
  readonly #now: () => number;
  #sweeper: NodeJS.Timeout | undefined;
  /** When the current turn of the event loop began to read uploads. */
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

  /** Opens an upload of at most `size` bytes, which may have to wait before its first byte. Throws HttpError 503 if there are too many. The caller must close it. */
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
    // After the sockets were read, since bytes that wait in them count as received.
    const sweep = (): unknown => setImmediate(() => this.sweep());
    this.#sweeper ??= setInterval(sweep, Math.min(this.limits.stallMs, this.limits.graceMs) / 2).unref();
    return upload;
  }

  /** Ends uploads that are too slow, and idle ones while others wait. Runs regularly while there are uploads. */
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

  /** @internal Counts received bytes; returns whether the upload may go on. */
  take(upload: Upload, bytes: number): boolean {
    // Later bytes of an upload that was given up are dropped.
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

  /** @internal Marks the body as complete. */
  completed(upload: Upload): void {
    this.#lend(upload, -upload.credit);
    upload.whole = true;
    upload.waiting = false;
    this.#serve();
  }

  /** @internal Waits for room for samples besides the upload's own bytes. */
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

  /** Most bytes of uploads that are being received. The other half is for samples, which may take more bytes than their file. */
  get #receiveLimit(): number {
    return this.limits.maxBytes / 2;
  }

  /** Most bytes that one address may hold, so that a quarter of the room for uploads is always left to others. */
  get #share(): number {
    return (this.limits.maxBytes / 8) * 3;
  }

  #receiving(): Upload[] {
    return [...this.#uploads].filter((upload) => !upload.whole);
  }

  /**
   * Pauses all uploads until the next turn of the event loop once they have had their time in this one: a turn would otherwise read a piece of each, however many
   * there are.
   */
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
    // Uploads are read in the order in which they are resumed.
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

  /** Grants an upload the room for its next bytes, if every upload can still be received in some order afterwards; returns whether it did. */
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

  /** Ends the idle upload that has been without bytes the longest, of those that would help; returns false if there is none. */
  #giveUpIdle(helps: (upload: Upload) => boolean): boolean {
    const silentSince = this.#now() - this.limits.stallMs;
    const idle = this.#receiving().filter((upload) => !upload.waiting && upload.lastByte <= silentSince && helps(upload));
    const longest = idle.reduce<Upload | undefined>((best, one) => (best && best.lastByte <= one.lastByte ? best : one), undefined);
    if (!longest) return false;
    longest.reader.stop(tooMany());
    longest.close();
    return true;
  }

  /** Distributes free room: first to complete uploads for their samples, then to those that wait, which are read on. */
  #serve(): void {
    const { maxBytes } = this.limits;
    for (const entry of [...this.#reserving]) {
      const { upload, bytes, start } = entry;
      const reserved = sum([...this.#pools.values()], (pool) => pool.reserved);
      // One of them always gets room, whatever its size; otherwise nothing would ever be freed.
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

/** One upload's share of the budget. */
export class Upload {
  readonly pool: Pool;
  readonly size: number;
  readonly reader: UploadReader;
  /** Bytes counted against the budget: received, granted, and samples. */
  held = 0;
  received = 0;
  /** Bytes granted but not yet received. */
  credit = 0;
  whole = false;
  /** Whether it has room for its samples. */
  reserved = false;
  /** Whether it is paused because there is no room, and since when. */
  waiting = false;
  waitingSince = 0;
  /** Whether it waits for the memory of all addresses, and not only for its own address's share. */
  waitsForAll = false;
  lastByte: number;
  /** When it began, moved forward by the time for which it waited. */
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

  /** Counts received bytes; false = stop reading until the reader's resume(). */
  take(bytes: number): boolean {
    return this.#budget.take(this, bytes);
  }

  /** Marks the body as complete. */
  complete(): void {
    this.#budget.completed(this);
  }

  /** Resolves once there is room for this many bytes of samples; rejects with the signal's reason. */
  async reserve(bytes: number, signal: AbortSignal): Promise<void> {
    await this.#budget.reserve(this, bytes, signal);
  }

  /** Counts the samples' bytes from now on, and no longer those of the file that they were made of. */
  settle(bytes: number): void {
    this.#budget.settle(this, bytes);
  }

  /** Frees all that it holds; may be called again. */
  close(): void {
    this.#budget.closed(this);
  }
}

const tooMany = (): HttpError => new HttpError(503, 'queue_full', 'too many uploads at once', { headers: { 'retry-after': '1' } });

const sum = <T>(items: readonly T[], value: (item: T) => number): number => items.reduce((total, item) => total + value(item), 0);

const needOf = (upload: Upload): number => Math.max(0, upload.size - upload.received - upload.credit);
const grantOf = (upload: Upload): number => Math.min(GRANT, upload.size - upload.received) - upload.credit;

/** Dijkstra's banker's algorithm: whether in some order each upload can get all that it may still need, from what those before it give back. */
function canFinish(receiving: readonly Upload[], limit: number): boolean {
  let free = limit - sum(receiving, ({ held }) => held);
  if (sum(receiving, needOf) <= free) return true;
  for (const upload of [...receiving].sort((a, b) => needOf(a) - needOf(b))) {
    if (needOf(upload) > free) return false;
    free += upload.held;
  }
  return true;
}

/** Key of an address: an IPv4 address, however it is written, or an IPv6 network of 64 bits, which one host has to itself. */
function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(':')) return mapped ?? address;
  const [head = '', tail = ''] = address.split('%')[0]!.split('::');
  const [before, after] = [head.split(':').filter(Boolean), tail.split(':').filter(Boolean)];
  const zeros = address.includes('::') ? Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0') : [];
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}
