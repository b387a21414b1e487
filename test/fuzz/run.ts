/** A run: cases of a seed against a server, in rounds of a hundred with good requests between them, and what was found. */
import { setTimeout as sleep } from 'node:timers/promises';
import { familyOf } from './case.ts';
import type { FuzzCase } from './case.ts';
import { makeCase } from './cases.ts';
import { writeDump } from './dump.ts';
import { perform } from './exchange.ts';
import type { Exchange } from './exchange.ts';
import { FuzzServer, growth } from './fuzz-server.ts';
import type { Holdings } from './fuzz-server.ts';
import { within } from './good.ts';
import { judge } from './judge.ts';

const ROUND = 100;
/** Cases that run at the same time. */
const AT_ONCE = 8;
/** Against hangs: no request may be without an answer for so long. */
const LIMIT_MS = 60_000;
/** Different faults after which a run gives up: more says nothing new. */
const MAX_FAULTS = 40;
/** Servers that are started anew after they were found broken. */
const MAX_SERVERS = 6;
/** Resident memory of fewer cases says more about the largest than about leaks. */
const CASES_TO_WEIGH = 3000;
const SHARE = 0.1;

export interface FuzzOptions {
  /** An odd one starts the server with a key. */
  readonly seed: number;
  /** No round begins after this. */
  readonly seconds?: number;
  /** Number of the first case. */
  readonly first?: number;
  /** Cases at most. */
  readonly cases?: number;
  /** Where reproductions are written. */
  readonly folder: string;
  /** Told after every round. */
  readonly onProgress?: (line: string) => void;
}

/** Faults that look the same. */
export interface Fault {
  readonly what: string;
  /** Cases that have it, the first of them, and where its reproduction is. */
  count: number;
  readonly first: number;
  readonly name: string;
  readonly path: string;
}

export interface FuzzReport {
  readonly cases: number;
  /** Cases by family and by status of their first answer, e.g. `body 400`. */
  readonly counts: Readonly<Record<string, number>>;
  readonly faults: readonly Fault[];
  /** What was held after the first third, and at the end; undefined when the run was shorter. */
  readonly before: Holdings | undefined;
  readonly after: Holdings | undefined;
  /** The slowest cases. */
  readonly slowest: readonly { readonly index: number; readonly name: string; readonly ms: number }[];
}

/** The key of a seed's server. */
export const keyOf = (seed: number): string | undefined => (seed % 2 === 1 ? `key-${seed}` : undefined);

/** Runs the cases and ends the server. */
export async function runFuzz(options: FuzzOptions): Promise<FuzzReport> {
  const run = new FuzzRun(options);
  try {
    await run.all();
  } finally {
    run.close();
  }
  return run.report();
}

interface Done {
  readonly index: number;
  readonly fuzz: FuzzCase;
}

class FuzzRun {
  readonly #options: FuzzOptions;
  readonly #key: string | undefined;
  readonly #faults = new Map<string, Fault>();
  readonly #counts: Record<string, number> = {};
  readonly #running = new Map<number, FuzzCase>();
  #slowest: { index: number; name: string; ms: number }[] = [];
  #server: FuzzServer | undefined;
  #servers = 0;
  #cases = 0;
  /** What ran when an engine ended. */
  #suspects: readonly string[] = [];
  #before: Holdings | undefined;
  #after: Holdings | undefined;

  constructor(options: FuzzOptions) {
    this.#options = options;
    this.#key = keyOf(options.seed);
  }

  async all(): Promise<void> {
    const { first = 0, cases = Infinity, seconds = Infinity, onProgress } = this.#options;
    await this.#start();
    const started = performance.now();
    const passed = (): number => Math.max(this.#cases / cases, (performance.now() - started) / 1000 / seconds);
    while (passed() < 1 && this.#faults.size < MAX_FAULTS && this.#servers <= MAX_SERVERS) {
      const from = first + this.#cases;
      const done = await this.#round(from, Math.min(ROUND, cases - this.#cases));
      if (!(await this.#check(done, from))) {
        this.#server?.kill();
        this.#before = undefined;
        await this.#start();
      } else if (this.#before === undefined && passed() >= 1 / 3 && passed() < 1) this.#before = await this.#look(done);
      onProgress?.(`${this.#cases} cases, ${this.#faults.size} kinds of faults`);
    }
    await this.#end();
  }

  close(): void {
    this.#server?.kill();
  }

  report(): FuzzReport {
    const faults = [...this.#faults.values()];
    return { cases: this.#cases, counts: this.#counts, faults, before: this.#before, after: this.#after, slowest: this.#slowest };
  }

  /** A server whose good requests are answered rightly before anything else comes. */
  async #start(): Promise<void> {
    this.#servers++;
    this.#server = await FuzzServer.start(this.#key);
    const problems = await this.#server.good.ask(0, LIMIT_MS);
    if (problems.length > 0) throw new Error(`a new server does not answer:\n${problems.join('\n')}`);
  }

  async #round(from: number, count: number): Promise<readonly Done[]> {
    const done: Done[] = [];
    let next = from;
    const worker = async (): Promise<void> => {
      while (next < from + count) done.push(await this.#one(next++));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    return done;
  }

  async #one(index: number): Promise<Done> {
    const fuzz = makeCase(this.#options.seed, index, { key: this.#key });
    const logged = this.#server!.lines.length;
    this.#running.set(index, fuzz);
    const exchange = await perform(fuzz, this.#server!.port(fuzz.listener), LIMIT_MS).catch((error: unknown) => String(error));
    this.#noteDeaths(logged);
    this.#running.delete(index);
    this.#cases++;
    if (typeof exchange === 'string') this.#found({ index, fuzz }, undefined, [`no connection: ${exchange}`]);
    else {
      this.#count(index, fuzz, exchange);
      this.#found({ index, fuzz }, exchange, judge(fuzz, exchange), this.#server!.lines.slice(logged).slice(-20));
    }
    return { index, fuzz };
  }

  /** The log says when an engine ends; whatever runs then is suspected of it. */
  #noteDeaths(logged: number): void {
    const isDeath = this.#server!.lines.slice(logged).some((line) => line.includes('engine process ended'));
    if (isDeath) this.#suspects = [...this.#running].map(([index, { name }]) => `case ${index}: ${name}`);
  }

  #count(index: number, fuzz: FuzzCase, { answers, ms }: Exchange): void {
    const name = `${familyOf(fuzz)} ${answers[0]?.status ?? 'none'}`;
    this.#counts[name] = (this.#counts[name] ?? 0) + 1;
    this.#slowest = [...this.#slowest, { index, name: fuzz.name, ms }].sort((a, b) => b.ms - a.ms).slice(0, 5);
  }

  /** Counts faults; the first of a kind is written down. */
  #found({ index, fuzz }: Done, exchange: Exchange | undefined, faults: readonly string[], log: readonly string[] = []): void {
    for (const what of faults) {
      const kind = `${familyOf(fuzz)}: ${what.replace(/\d+/g, '#').slice(0, 80)}`;
      const known = this.#faults.get(kind);
      if (known) known.count++;
      else {
        const { folder, seed } = this.#options;
        const path = writeDump(folder, { seed, index, fuzz, exchange, faults, log });
        this.#faults.set(kind, { what, count: 1, first: index, name: fuzz.name, path });
      }
    }
  }

  /** Whether the server is still the one it was: alive, and right about good requests. */
  async #check(done: readonly Done[], round: number): Promise<boolean> {
    const died = await within(this.#server!.died(), LIMIT_MS).catch((error: unknown) => String(error));
    const problems = died === undefined ? await this.#server!.good.ask(round, LIMIT_MS) : [died];
    if (problems.length === 0) return true;
    // Which case it was, nobody can tell from here: all of the round are named, and `--case A-B` repeats them.
    const last = done.at(-1)!;
    const names = done.map(({ index, fuzz }) => `case ${index}: ${fuzz.name}`).sort();
    const suspects = this.#suspects.length > 0 ? ['# ran when the engine ended', ...this.#suspects] : [];
    this.#suspects = [];
    const log = [...suspects, ...this.#server!.lines.slice(-40), `# the round (--case ${round}-${round + done.length - 1})`, ...names];
    for (const problem of problems) this.#found({ ...last, fuzz: { ...last.fuzz, name: `server/after cases ${round} to ${round + done.length - 1}` } }, undefined, [problem], log); // prettier-ignore
    return false;
  }

  async #look(done: readonly Done[] = []): Promise<Holdings | undefined> {
    const held = await within(this.#server!.holdings(), LIMIT_MS);
    if (typeof held !== 'string') return held;
    const last = done.at(-1);
    if (last) this.#found(last, undefined, [`it does not become idle: ${held}`], this.#server!.lines.slice(-40));
    return undefined;
  }

  /** The last look, and an end in order. */
  async #end(): Promise<void> {
    const fuzz: FuzzCase = {
      name: 'end/',
      listener: 'chat',
      method: 'GET',
      bytes: Buffer.alloc(0),
      delivery: {},
      expect: { answers: 'none' },
    };
    const last: Done = { index: (this.#options.first ?? 0) + this.#cases, fuzz };
    this.#after = await this.#look([last]);
    if (this.#before && this.#after) {
      const weighs = this.#cases >= CASES_TO_WEIGH;
      const grown = growth(this.#before, this.#after, SHARE).filter((line) => weighs || !/^(server|engine)Bytes/.test(line));
      this.#found(last, undefined, grown.map((line) => `grown: ${line}`), this.#server!.lines.slice(-40)); // prettier-ignore
    }
    const code = await Promise.race([this.#server!.leave(), sleep(LIMIT_MS, 'none', { ref: false })]);
    if (code !== 0) this.#found(last, undefined, [`asked to leave, the server ended with ${code}`], this.#server!.lines.slice(-40));
  }
}
