/** Grammar threads: what a bad grammar takes with it, where grammars are compiled, and that nobody else notices. */
import { afterEach, describe, expect, test } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { PlatformWorker } from '../../engine/platform/platform.ts';
import { GRAMMAR_LIMITS, Grammars } from '../../engine/text/grammar.ts';
import type { Constraint, GrammarMatcher } from '../../engine/text/grammar.ts';
import type { GrammarSource } from '../../engine/text/grammar-library.ts';
import { CallFailed, GrammarThread, ThreadLost } from '../../engine/text/grammar-thread.ts';
import type { GrammarCall, GrammarReply } from '../../engine/text/grammar-worker.ts';
import { firstOf } from '../support/thorough.ts';

const VOCABULARY = { tokens: Array.from({ length: 64 }, (_, i) => String.fromCharCode(64 + i)), type: 'raw', stopTokenIds: [0] } as const;
const ALL = Int32Array.of(-1, -1);
const schema = (name: string): Constraint => ({ type: 'json_schema', schema: { const: name } });

type Open = Extract<GrammarCall, { type: 'open' }>;

/** A thread that answers what `answer` says; undefined = it is still at it. */
class FakeWorker implements PlatformWorker {
  readonly calls: GrammarCall[] = [];
  ended = false;
  readonly #answer: (call: GrammarCall) => GrammarReply | undefined;
  #tell: (message: unknown) => void = () => {};
  #queue: GrammarCall[] = [];
  #busy = false;

  constructor(answer: (call: GrammarCall) => GrammarReply | undefined) {
    this.#answer = answer;
  }

  get opened(): Open[] {
    return this.calls.filter((call) => call.type === 'open');
  }

  post(message: unknown): void {
    this.#queue.push(message as GrammarCall);
    this.#work();
  }

  onMessage(callback: (message: unknown) => void): void {
    this.#tell = callback;
  }

  onExit(): void {}

  async terminate(): Promise<void> {
    this.ended = true;
  }

  #work(): void {
    const call = this.#queue[0];
    if (this.#busy || !call) return;
    const reply = this.#answer(call);
    if (!reply) {
      this.#busy = true;
      return;
    }
    this.#queue.shift();
    this.calls.push(call);
    queueMicrotask(() => {
      if (!this.ended) this.#tell(reply);
      this.#work();
    });
  }
}

const fine = (call: GrammarCall, bytes = 1): GrammarReply => ({
  bytes,
  ...(call.type === 'open' || call.type === 'advance' ? { mask: ALL } : {}),
});
const isFor = (call: GrammarCall, name: string): boolean => call.type === 'open' && JSON.stringify(call.source).includes(name);

function fakes(answer: (call: GrammarCall) => GrammarReply | undefined, limits: Partial<typeof GRAMMAR_LIMITS> = {}) {
  const workers: FakeWorker[] = [];
  const start = (): PlatformWorker => {
    const worker = new FakeWorker(answer);
    workers.push(worker);
    return worker;
  };
  const grammars = new Grammars(start, () => VOCABULARY, { ...GRAMMAR_LIMITS, ...limits });
  const one = async (constraint: Constraint): Promise<GrammarMatcher> => (await grammars.start(constraint, 1))[0]!;
  return { workers, grammars: { start: one, close: () => grammars.close() } };
}

describe('what a thread is lost by', () => {
  test.each<[string, (call: GrammarCall) => GrammarReply | undefined, RegExp]>([
    ['takes too long', (call) => (isFor(call, 'bad') ? undefined : fine(call)), /takes more than 0.02 s/],
    [
      'breaks the library',
      (call) => (isFor(call, 'bad') ? { bytes: 1, error: { message: 'unreachable', broken: true } } : fine(call)),
      /unreachable/,
    ],
  ])('a grammar that %s is refused; those behind it are compiled elsewhere', async (_, answer, message) => {
    const { workers, grammars } = fakes(answer, { threads: 1, milliseconds: 20 });
    const bad = grammars.start(schema('bad'));
    const good = grammars.start(schema('good'));
    const object = grammars.start({ type: 'json_object' });
    await expect(bad).rejects.toMatchObject({
      code: 'invalid_json_schema',
      message: expect.stringMatching(message),
      param: 'responseFormat.schema',
    });
    expect(await (await good).bitmask()).toEqual(ALL);
    expect((await object).terminated).toBe(false);
    expect(workers.map(({ ended }) => ended)).toEqual([true, false]);
  });

  test('a sequence that runs goes on in another thread where it was', async () => {
    const { workers, grammars } = fakes((call) => (isFor(call, 'bad') ? { bytes: 1, error: { message: 'x', broken: true } } : fine(call)), {
      threads: 1,
    });
    const running = await grammars.start(schema('good'));
    for (const token of [5, 6]) {
      expect(running.accept(token)).toBe(true);
      await running.bitmask();
    }
    await expect(grammars.start(schema('bad'))).rejects.toThrow();
    expect(running.accept(7)).toBe(true);
    expect(await running.bitmask()).toEqual(ALL);
    expect(workers[1]!.opened).toMatchObject([{ tokens: [5, 6, 7] }]);
    expect(running.accept(8)).toBe(true);
    await running.bitmask();
    expect(workers[1]!.calls.at(-1)).toMatchObject({ type: 'advance', token: 8 });
  });

  test('a mask that cannot be computed fails its own sequence', async () => {
    const broken = (call: GrammarCall): GrammarReply =>
      call.type === 'advance' && call.token === 9 ? { bytes: 1, error: { message: 'trap', broken: true } } : fine(call);
    const { grammars } = fakes(broken, { threads: 1 });
    const [bad, good] = [await grammars.start(schema('a')), await grammars.start(schema('a'))];
    bad.accept(9);
    good.accept(3);
    await expect(bad.bitmask()).rejects.toThrow('trap');
    expect(await good.bitmask()).toEqual(ALL);
  });

  test('an answer that ends with a token its grammar would go on from leaves its thread to others', async () => {
    const { workers, grammars } = fakes((call) => fine(call), { threads: 1 });
    const [cut, other] = [await grammars.start(schema('a')), await grammars.start(schema('a'))];
    expect(cut.accept(5)).toBe(true);
    cut.dispose();
    other.accept(6);
    await other.bitmask();
    // The thread breaks at a call to a matcher that it was told to close.
    const calls = workers[0]!.calls.map((call) => (call.type === 'advance' ? `advance by ${call.token}` : call.type));
    expect(calls).toEqual(['load', 'open', 'open', 'close', 'advance by 6']);
  });

  test('a library that cannot be started is nobody’s schema', async () => {
    const { grammars } = fakes(() => ({ bytes: 0, error: { message: 'no such file', broken: true } }));
    await expect(grammars.start(schema('a'))).rejects.toMatchObject({ code: 'internal', message: expect.stringContaining('no such file') });
  });
});

describe('where grammars are compiled', () => {
  test('not beside one that runs, as long as there are threads', async () => {
    const { workers, grammars } = fakes((call) => fine(call), { threads: 2 });
    const first = await grammars.start(schema('first'));
    const second = await grammars.start(schema('second'));
    const again = await grammars.start(schema('first'));
    expect(workers.map(({ opened }) => opened.length)).toEqual([2, 1]);
    const third = await grammars.start(schema('third'));
    expect(workers.map(({ opened }) => opened.length)).toEqual([2, 2]);
    for (const matcher of [first, second, again, third]) matcher.dispose();
    await Promise.all([grammars.start(schema('first')), grammars.start(schema('third'))]);
    expect(workers.map(({ opened }) => opened.length)).toEqual([3, 3]);
  });

  test('one that is being compiled is waited for, not compiled again', async () => {
    const { workers, grammars } = fakes((call) => fine(call));
    await Promise.all([grammars.start(schema('a')), grammars.start(schema('a'))]);
    expect(workers.map(({ opened }) => opened.length)).toEqual([2]);
  });

  test('one that is kept does not wait for another that is being compiled', async () => {
    const { workers, grammars } = fakes((call) => (isFor(call, 'slow') ? undefined : fine(call)));
    (await grammars.start(schema('a'))).dispose();
    await new Promise<void>((resolve) => queueMicrotask(resolve));
    const slow = grammars.start(schema('slow'));
    slow.catch(() => {});
    expect(await (await grammars.start(schema('a'))).bitmask()).toEqual(ALL);
    expect(workers).toHaveLength(2);
    await grammars.close();
    await expect(slow).rejects.toMatchObject({ code: 'shutting_down' });
  });

  test('a thread that has grown is ended once nothing runs in it', async () => {
    const { workers, grammars } = fakes((call) => fine(call, 500), { threads: 1, keptBytes: 499 });
    const [first, second] = [await grammars.start(schema('a')), await grammars.start(schema('b'))];
    first.dispose();
    await grammars.start(schema('a')).then((matcher) => matcher.dispose());
    expect(workers[0]!.ended).toBe(false);
    second.dispose();
    await grammars.start(schema('a'));
    expect(workers.map(({ ended }) => ended)).toEqual([true, false]);
  });
});

describe('the library itself', () => {
  const platform = createNodePlatform();
  const url = new URL('../../engine/text/grammar-worker.ts', import.meta.url);
  const threads: GrammarThread[] = [];
  const startThread = (limits = {}): GrammarThread => {
    const thread = new GrammarThread(platform.startGrammarWorker!(url), VOCABULARY, { ...GRAMMAR_LIMITS, ...limits }, () => {});
    threads.push(thread);
    return thread;
  };
  afterEach(() => Promise.all(threads.splice(0).map((thread) => thread.end())));

  const unchecked = (value: unknown): GrammarSource => ({ type: 'json_schema', schema: { schema: JSON.stringify(value), numbers: [] } });
  const open = (value: unknown, matcher: number): GrammarCall => ({
    type: 'open',
    key: String(matcher),
    source: unchecked(value),
    matcher,
    tokens: [],
  });
  const chain = (length: number): unknown => {
    const link = (i: number): unknown => ({ type: 'object', properties: { x: { $ref: `#/$defs/a${i + 1}` } }, required: ['x'] });
    const definitions = Array.from({ length }, (_, i) => [`a${i}`, i === length - 1 ? { type: 'string' } : link(i)]);
    return { $ref: '#/$defs/a0', $defs: Object.fromEntries(definitions) };
  };

  // The library takes half a minute over the last.
  test.each(firstOf(2, [39, 40, 60]))(
    '%i definitions, unchecked, run over its stack: the thread is lost, whether or not it failed',
    async (length) => {
      const thread = startThread();
      const [bad, next] = [thread.ask(open(chain(length), 1)), thread.ask(open({ type: 'string' }, 2))];
      next.catch(() => {});
      await expect(bad).rejects.toBeInstanceOf(CallFailed);
      await expect(next).rejects.toBeInstanceOf(ThreadLost);
      expect(await startThread().ask(open({ type: 'string' }, 3))).toHaveLength(2);
    },
  );

  test('what the library says of a schema is the reason that is given', async () => {
    await expect(startThread().ask(open({ type: 'string', minLength: 5, maxLength: 2 }, 1))).rejects.toThrow(
      /minLength 5 is greater than maxLength 2/,
    );
  });

  test('its memory is bounded', async () => {
    const names = Array.from({ length: 256 }, (_, i) => [`p${i}`, { type: 'string', maxLength: 1_000 + i }]);
    const large = { type: 'object', properties: Object.fromEntries(names) };
    await expect(startThread({ maxBytes: 17 * 2 ** 20 }).ask(open(large, 1))).rejects.toThrow(/more than 17 MiB/);
  });

  test('a matcher outlives the place of its grammar among those that are kept', async () => {
    const thread = startThread({ kept: 1 });
    const first = await thread.ask(open({ const: 'AAAA' }, 1));
    await thread.ask(open({ const: 'BBBB' }, 2));
    await thread.ask(open({ const: 'CCCC' }, 3));
    // One that it does not allow changes nothing.
    expect(await thread.ask({ type: 'advance', matcher: 1, token: 1 })).toEqual(first);
  });
});
