/** Constrained answers, drawn at random from what their masks allow, and what becomes of the others when a grammar is slow, hostile or fails. No GPU. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import type { ChatRequest, ModelInfo } from '../../engine/api.ts';
import { BlockTable } from '../../engine/cache/block-table.ts';
import { PagePool } from '../../engine/cache/page-pool.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { PlatformWorker } from '../../engine/platform/platform.ts';
import type { StepResult } from '../../engine/runner/model-runner.ts';
import type { Batch } from '../../engine/scheduler/batch.ts';
import { samplingDefaults } from '../../engine/sampling.ts';
import { Scheduler } from '../../engine/scheduler/scheduler.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import type { ChatParts, ChatRunner } from '../../engine/tasks/chat-load.ts';
import { ChatTemplate } from '../../engine/text/chat-template.ts';
import { Grammars } from '../../engine/text/grammar.ts';
import type { GrammarCall, GrammarReply } from '../../engine/text/grammar-worker.ts';
import { LongTexts } from '../../engine/text/long-texts.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { createRng } from '../../engine/util/rng.ts';

const FOLDER = join(fileURLToPath(new URL('../..', import.meta.url)), 'models', 'parley-chat');
/** Of a mask: the bundled model has 4,096 tokens. */
const WORDS = 4096 / 32;
const STOP = 2;

/** A thread whose grammar allows everything, until a token was accepted: then `answer` decides. */
function worker(answer: (call: GrammarCall) => GrammarReply | undefined): PlatformWorker {
  let tell: (message: unknown) => void = () => {};
  const mask = new Int32Array(WORDS).fill(-1);
  return {
    post: (message) => {
      const call = message as GrammarCall;
      const reply = call.type === 'advance' ? answer(call) : { bytes: 1, ...(call.type === 'open' && { mask }) };
      if (reply) queueMicrotask(() => tell(reply));
    },
    onMessage: (callback) => (tell = callback),
    onExit: () => {},
    terminate: async () => {},
  };
}

/** Draws without a GPU: of the tokens that a mask allows, or any that are no end. */
function runner(): ChatRunner {
  const { uniform } = createRng(7);
  const word = (): number => 300 + Math.floor(uniform() * 3000);
  const allowed = (mask: Int32Array): number => {
    const tokens = Array.from({ length: WORDS * 32 }, (_, token) => token).filter(
      (token) => ((mask[token >> 5]! >>> (token & 31)) & 1) === 1,
    );
    return tokens[Math.floor(uniform() * tokens.length)]!;
  };
  const run = ({ sampled }: Batch): StepResult => {
    const tokens = Uint32Array.from(sampled.map(({ sequence }) => (sequence.mask ? allowed(sequence.mask) : word())));
    return { tokens: async () => tokens };
  };
  return { run };
}

const URL_OF_WORKER = new URL('../../engine/text/grammar-worker.ts', import.meta.url);

/** The bundled chat model's engine, all but the model. */
async function load(
  startWorker = (): PlatformWorker => createNodePlatform().startGrammarWorker!(URL_OF_WORKER),
  others: Partial<ChatParts> = {},
): Promise<ChatEngine> {
  const platform = createNodePlatform({ log: () => undefined });
  const folder = await openModelFolder(platform, FOLDER);
  const tokenizer = await Tokenizer.load(folder);
  const pool = new PagePool(1024);
  const limits = { pageSize: 16, maxRunning: 8, prefillChunk: 256, maxQueued: 8 };
  const vocabulary = { ...tokenizer.vocabulary, stopTokenIds: [STOP] };
  const parts: ChatParts = {
    tokenizer,
    texts: new LongTexts({}, tokenizer, { path: FOLDER, size: WORDS * 32 }),
    template: await ChatTemplate.load(folder, tokenizer),
    scheduler: new Scheduler(pool, new BlockTable(8, 128), limits),
    pool,
    runner: runner(),
    samplingDefaults: samplingDefaults({}, 'openai'),
    eos: new Set([STOP]),
    context: 2048,
    truncates: false,
    vocabulary: WORDS * 32,
    grammars: new Grammars(startWorker, () => vocabulary),
    overlap: true,
    priorities: false,
    ...others,
  };
  return new ChatEngine({ id: 'fake', task: 'chat' } as ModelInfo, parts);
}

const plain = (maxTokens: number): ChatRequest => ({
  messages: [{ role: 'user', content: 'Tell me a short story about a fox.' }],
  sampling: { temperature: 0 },
  maxTokens,
});
const held = (schema: unknown, maxTokens = 1000): ChatRequest => ({ ...plain(maxTokens), responseFormat: { type: 'json_schema', schema } });

async function text(engine: ChatEngine, request: ChatRequest, signal = new AbortController().signal): Promise<string> {
  let all = '';
  for await (const event of engine.chat(request, signal)) if (event.type === 'delta') all += event.text;
  return all;
}

const named = (count: number): unknown => {
  const names = Array.from({ length: count }, (_, i) => `p${i}`);
  return { type: 'object', properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])) };
};
const ring = {
  $ref: '#/$defs/a0',
  $defs: Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [`a${i}`, { type: 'object', properties: { x: { $ref: `#/$defs/a${(i + 1) % 40}` } } }]),
  ),
};

describe('grammars of a chat engine', () => {
  test('large and hostile ones change nothing for others; those that can be enforced are', async () => {
    const engine = await load();
    try {
      const item = {
        type: 'object',
        properties: {
          price: { type: 'number', minimum: 1, maximum: 99, multipleOf: 0.25 },
          sold: { type: 'boolean', nullable: true },
        },
        required: ['price', 'sold'],
        additionalProperties: false,
      };
      const [beside, large, deep, wide, ...items] = await Promise.allSettled([
        text(engine, plain(48)),
        text(engine, held(named(64), 8)),
        text(engine, held(ring)),
        text(engine, held(named(401))),
        ...Array.from({ length: 8 }, () => text(engine, held(item))),
      ]);
      expect(beside).toMatchObject({ value: expect.stringMatching(/\w/) });
      expect(large).toMatchObject({ value: expect.stringMatching(/^\{/) });
      const param = 'responseFormat.schema';
      for (const refused of [deep, wide]) expect(refused).toMatchObject({ reason: { code: 'invalid_json_schema', param } });
      for (const answer of items as PromiseFulfilledResult<string>[]) {
        const { price, sold } = JSON.parse(answer.value) as { readonly price: number; readonly sold: boolean | null };
        expect(price >= 1 && price <= 99 && price % 0.25 === 0).toBe(true);
        expect([true, false, null]).toContain(sold);
      }
    } finally {
      await engine.close();
    }
  });

  test('a mask that does not come holds up its own sequence only', async () => {
    const engine = await load(() => worker(() => undefined));
    try {
      const controller = new AbortController();
      const stuck = engine.chat(held({ type: 'string' }), controller.signal);
      await stuck.next();
      expect(await text(engine, plain(24))).toMatch(/\w/);
      controller.abort();
      await expect(stuck.next().then(() => stuck.next())).rejects.toMatchObject({ code: 'aborted' });
      expect(engine.status()).toMatchObject({ running: 0, waiting: 0 });
    } finally {
      await engine.close();
    }
  });

  test('a mask that cannot be computed ends its own request', async () => {
    const engine = await load(() => worker(() => ({ bytes: 1, error: { message: 'unreachable', broken: true } })));
    try {
      const [bad, good] = await Promise.allSettled([text(engine, held({ type: 'string' })), text(engine, plain(24))]);
      expect(bad).toMatchObject({ reason: { code: 'internal', message: expect.stringContaining('unreachable') } });
      expect(good).toMatchObject({ value: expect.stringMatching(/\w/) });
      expect(engine.status()).toMatchObject({ running: 0, waiting: 0 });
    } finally {
      await engine.close();
    }
  });

  test('a request that the queue has no room for leaves no matcher behind', async () => {
    const open = new Set<number>();
    const counted = (): PlatformWorker => {
      const thread = worker(() => undefined);
      const post = (message: unknown): void => {
        const call = message as GrammarCall;
        if (call.type === 'open') open.add(call.matcher);
        if (call.type === 'close') open.delete(call.matcher);
        thread.post(call);
      };
      return { ...thread, post };
    };
    const engine = await load(counted);
    try {
      // 8 run, and 8 wait.
      const leaving = new AbortController();
      const results = Array.from({ length: 9 }, () => text(engine, { ...held({ type: 'string' }), n: 2 }, leaving.signal));
      const refused = await Promise.race(results.map((result) => result.catch((error: unknown) => error)));
      expect(refused).toMatchObject({ code: 'queue_full' });
      expect(open.size).toBe(16);
      leaving.abort();
      await Promise.allSettled(results);
      expect(open.size).toBe(0);
    } finally {
      await engine.close();
    }
  });

  test('an answer that is all held has no thoughts, also where the prompt begins them', async () => {
    const hasToken = (token: string): boolean => ['<think>', '</think>'].includes(token);
    const template = new ChatTemplate('{{ tools }}{% for message in messages %}{{ message.content }}{% endfor %}<think>\n', {}, hasToken);
    const engine = await load(undefined, { template });
    const schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'], additionalProperties: false };
    const tools = [{ name: 'ping', parameters: schema }];
    const ask = async (options: Partial<ChatRequest>) => {
      const answer = { text: '', thoughts: '', calls: '' };
      for await (const event of engine.chat({ ...plain(200), ...options }, new AbortController().signal)) {
        if (event.type !== 'delta') continue;
        answer.text += event.text;
        answer.thoughts += event.reasoning ?? '';
        answer.calls += (event.toolCalls ?? []).map(({ name = '', arguments: piece = '' }) => name + piece).join('');
      }
      return answer;
    };
    try {
      const json = await ask({ responseFormat: { type: 'json_schema', schema } });
      expect(JSON.parse(json.text)).toEqual({ ok: expect.any(Boolean) as boolean });
      expect(json).toMatchObject({ thoughts: '', calls: '' });
      // Tags in a text of it are its own.
      const quoted = await ask({ responseFormat: { type: 'json_schema', schema: { enum: ['a <think> b'] } } });
      expect(quoted).toEqual({ text: '"a <think> b"', thoughts: '', calls: '' });
      const called = await ask({ tools, toolChoice: 'required', parallelToolCalls: false });
      expect(called).toEqual({ text: '', thoughts: '', calls: expect.stringMatching(/^ping\{"ok": (true|false)\}$/) as string });
      // Other answers begin with the thoughts.
      expect(await ask({})).toMatchObject({ text: '', thoughts: expect.stringMatching(/\w/) as string });
    } finally {
      await engine.close();
    }
  });
});

test('a tool whose schema names no type, or others too, is called with an object: nothing else is read as a call', async () => {
  const engine = await load();
  const none = { type: ['object', 'null'], properties: {}, additionalProperties: false };
  try {
    for (const [parameters, call] of [
      [{}, /^ping\{/],
      [{ description: 'Takes nothing.' }, /^ping\{/],
      [none, /^ping\{\s*\}$/],
      [{ anyOf: [{ type: 'null' }, none, { type: 'string' }] }, /^ping\{\s*\}$/],
      [{ type: 'object', nullable: true, properties: {}, additionalProperties: false }, /^ping\{\s*\}$/],
    ] as const) {
      let said = '';
      const request = { ...plain(300), tools: [{ name: 'ping', parameters }], toolChoice: { name: 'ping' } };
      for await (const event of engine.chat(request, new AbortController().signal)) {
        if (event.type !== 'delta') continue;
        said += event.text + (event.toolCalls ?? []).map(({ name = '', arguments: piece = '' }) => name + piece).join('');
      }
      expect(said).toMatch(call);
    }
  } finally {
    await engine.close();
  }
});

test('an answer that can only be calls has no text that stop strings would end', async () => {
  const engine = await load();
  try {
    let said = '';
    const tools = [{ name: 'ping', parameters: { type: 'object', properties: {}, additionalProperties: false } }];
    const request: ChatRequest = {
      ...plain(300),
      stop: ['\n', 'tool', '{', 'ping'],
      tools,
      toolChoice: 'required',
      parallelToolCalls: false,
    };
    for await (const event of engine.chat(request, new AbortController().signal)) {
      if (event.type === 'delta') said += event.text + (event.toolCalls ?? []).map(({ name = '', arguments: piece = '' }) => name + piece).join(''); // prettier-ignore
      if (event.type === 'finish') expect(event).toMatchObject({ reason: 'tool_calls', stopReason: null });
    }
    expect(said).toMatch(/^ping\{\s*\}$/);
  } finally {
    await engine.close();
  }
});

test.each([
  ['a template that opens thoughts', (has: string) => has === '<think>', '{{ messages[0].content }}<think>'],
  ['a template of Harmony', () => false, '<|channel|><|message|>{{ messages[0].content }}<|start|>assistant'],
])('the schemas of tools are read no more often than for a plain template: %s', async (_, hasToken, source) => {
  const readsOf = async (template: ChatTemplate): Promise<number> => {
    const allowAll = worker(() => ({ bytes: 1, mask: new Int32Array(WORDS).fill(-1) }));
    const engine = await load(() => allowAll, { template });
    let reads = 0;
    const parameters = {
      type: 'object',
      get properties() {
        reads++;
        return { x: { type: 'string' } };
      },
    };
    try {
      await text(engine, { ...plain(2), tools: [{ name: 'f', parameters }], toolChoice: 'required' });
    } finally {
      await engine.close();
    }
    return reads;
  };
  const plainly = await readsOf(new ChatTemplate('{{ messages[0].content }}', {}, () => false));
  expect(plainly).toBeGreaterThan(0);
  expect(await readsOf(new ChatTemplate(source, {}, hasToken))).toBe(plainly);
});

test('a request whose prompt is cached but for its last token starts as any other, also where it waits for a page', async () => {
  const pool = new PagePool(6);
  const limits = { pageSize: 16, maxRunning: 4, prefillChunk: 256, maxQueued: 8, prefixCache: true };
  let hold: Promise<void> | undefined;
  let submitted = (): void => {};
  const held = (batch: Batch): StepResult => {
    const tokens = Uint32Array.from(batch.sampled, () => 300);
    const until = hold;
    submitted();
    return { tokens: async () => (await until, tokens) };
  };
  const engine = await load(undefined, { pool, scheduler: new Scheduler(pool, new BlockTable(4, 6), limits), runner: { run: held } });
  const ask = async (prompt: readonly number[], maxTokens: number, signal = new AbortController().signal): Promise<string[]> => {
    const types: string[] = [];
    for await (const { type } of engine.chat({ messages: [], prompt, sampling: {}, maxTokens, ignoreEos: true }, signal)) types.push(type);
    return types;
  };
  const from = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first + i);
  try {
    await ask([...from(400, 16), 500], 1);
    // All other pages are those of one that has left, as long as its step is under way.
    let release = (): void => {};
    hold = new Promise((resolve) => (release = resolve));
    const leaving = new AbortController();
    submitted = () => void setImmediate(() => leaving.abort());
    await expect(ask(from(700, 74), 5, leaving.signal)).rejects.toMatchObject({ code: 'aborted' });
    hold = undefined;
    submitted = () => {};
    const waiting = ask([...from(400, 16), 501], 2);
    await vi.waitFor(() => expect(engine.status()).toMatchObject({ waiting: 1 }));
    release();
    expect(await waiting).toEqual(['start', 'delta', 'delta', 'finish']);
  } finally {
    await engine.close();
  }
});
