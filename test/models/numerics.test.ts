/** What docs/numerics.md promises of a mode in which prompts take subgroup matrices; that answers are alike alone and in a batch, batch-invariance.test.ts says. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ChatRequest } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { linear } from '../../engine/ops/linear.ts';
import { hasMatrices } from '../../engine/ops/linear-matrix.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { createRng } from '../../engine/util/rng.ts';
import { anyWeight } from '../support/any-weight.ts';
import { nmse } from '../support/compare.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';
import { once, spoiled } from '../support/spoiled-shaders.ts';
import { startedChat } from '../support/started-chat.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const VOCABULARY = 160;

let device: Device;
let folder: string;
beforeAll(async () => {
  device = await testDevice();
  folder = mkdtempSync(join(tmpdir(), 'parley-'));
  cpSync(join(ROOT, 'test/fixtures/llama-tiny-random/llama'), folder, { recursive: true });
  writeNumberTokenizer(folder, VOCABULARY);
});
afterAll(() => {
  device.close();
  rmSync(folder, { recursive: true });
});

const rng = createRng(5);
const tokens = (count: number): number[] => Array.from({ length: count }, () => rng.integer(VOCABULARY));
const request = (prompt: readonly number[], priority = 0): ChatRequest => ({
  messages: [],
  prompt,
  priority,
  sampling: { temperature: 0 },
  maxTokens: 16,
  ignoreEos: true,
  skipSpecialTokens: false,
  logprobs: 0,
});

interface Answer {
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
}

async function ask(engine: ChatEngine, asked: ChatRequest, onToken: () => void = () => undefined): Promise<Answer> {
  const answer = { tokens: [] as number[], logprobs: [] as number[] };
  for await (const event of engine.chat(asked, new AbortController().signal)) {
    if (event.type !== 'delta') continue;
    for (const { token, logprob } of event.logprobs ?? []) {
      answer.tokens.push(Number(token));
      answer.logprobs.push(logprob);
    }
    onToken();
  }
  return answer;
}

async function load(settings: Partial<EngineConfig> = {}): Promise<ChatEngine> {
  const config = resolveConfig({ maxRunningRequests: 4, numerics: 'fast', ...settings });
  const engine = await ChatEngine.load(device, createNodePlatform({ log: () => undefined }), { path: folder }, config);
  onTestFinished(() => engine.close());
  return engine;
}

test('a model says whether its prompts take matrices, which nobody gets who has not asked', async () => {
  const asked = await load();
  expect(asked.info.numerics).toBe(hasMatrices(device.caps) ? 'fast' : 'invariant');
  expect((await load({ numerics: 'invariant' })).info.numerics).toBe('invariant');
});

describe('with matrices', () => {
  beforeEach((context) => {
    // Such as lavapipe before Mesa 26: fast is invariant there, which the test above and all others hold it to.
    if (!hasMatrices(device.caps)) context.skip('this adapter has no subgroup matrices, so that fast is invariant');
  });

  test('rows of prompts take them, and no others', () => {
    const weight = anyWeight(createRng(1), 'f16', 64, 64).pack(device);
    const [x, out] = [device.tensor('x', 'f32', [9, 64]), device.tensor('out', 'f32', [9, 64])];
    const taken = (promptFrom?: number): readonly string[] =>
      [...device.compile((rec) => linear(rec, { x, weight, out, promptFrom }))].map((label) => label.split(' ', 1)[0]!);
    expect(taken(0)).toEqual(['half_rows', 'linear_matrix']);
    expect(taken(2)).toHaveLength(3);
    for (const promptFrom of [undefined, 9]) expect(taken(promptFrom)).not.toContain('linear_matrix');
  });

  test('logits of a prompt are other bits, and near', async () => {
    const path = join(ROOT, 'models', 'parley-chat');
    const own = createRng(3);
    const prompt = Array.from({ length: 96 }, () => own.integer(4000));
    const logits = async (promptFrom: number | undefined): Promise<Float32Array[]> => {
      const harness = await DecoderHarness.load(device, path, { dtype: 'f16' });
      return harness.step([{ sequence: 0, start: 0, tokens: prompt }], undefined, promptFrom);
    };
    const [exact, fast, later] = [await logits(undefined), await logits(0), await logits(40)];
    const off = exact.map((row, i) => nmse(fast[i]!, row));
    expect(Math.min(...off)).toBeGreaterThan(0);
    // As far as f16 pages put them off, and less than a thousandth of what shows in an answer.
    expect(Math.max(...off)).toBeLessThan(1e-5);
    // Rows before the first of the prompt have the bits that they always have.
    expect(later.slice(0, 40)).toEqual(exact.slice(0, 40));
    expect(later.slice(40)).not.toEqual(exact.slice(40));
  });

  test('an answer is the same once its prompt is cached, also where it follows a turn whose answer is', async () => {
    const first = tokens(50);
    const engine = await load();
    const before = await ask(engine, request(first));
    expect(await ask(engine, request(first))).toEqual(before);
    const turn = request([...first, ...before.tokens, ...tokens(9)]);
    const after = await ask(engine, turn);
    expect(await ask(engine, turn)).toEqual(after);
    expect(engine.status().cachedTokens).toBe(48 + 48 + 64);
    const anew = await load({ disableRadixCache: true });
    expect(await ask(anew, request(first))).toEqual(before);
    expect(await ask(anew, turn)).toEqual(after);
  });

  test('an answer is the same where its place was taken on the way', async () => {
    const [low, high] = [request(tokens(33)), request(tokens(70), 100)];
    const settings = { maxRunningRequests: 1, enablePriorityScheduling: true, prioritySchedulingPreemptionThreshold: 1 };
    const engine = await load(settings);
    const [alone, other] = [await ask(engine, low), await ask(engine, high)];
    const again = await load(settings);
    let count = 0;
    let preempting: Promise<Answer> | undefined;
    const order: string[] = [];
    const interrupted = ask(again, low, () => {
      if (++count === 5) preempting = ask(again, high).then((answer) => (order.push('high'), answer));
    }).then((answer) => (order.push('low'), answer));
    expect(await interrupted).toEqual(alone);
    expect(await preempting).toEqual(other);
    expect(order).toEqual(['high', 'low']);
  });

  test('ranks of a split model take them too', async () => {
    const asked = request(tokens(60));
    const engine = await load({ tpSize: 2, rankThreads: false });
    expect(engine.info.numerics).toBe('fast');
    const [first, second] = [await ask(engine, asked), await ask(engine, asked)];
    expect(second).toEqual(first);
    expect(engine.status().cachedTokens).toBe(48);
    const whole = await ask(await load(), asked);
    expect(nmse(first.logprobs.slice(0, 1), whole.logprobs.slice(0, 1))).toBeLessThan(1e-5);
    const exact = await ask(await load({ tpSize: 2, rankThreads: false, numerics: 'invariant' }), asked);
    expect(first.logprobs).not.toEqual(exact.logprobs);
  });

  test('the self-test does without matrices where they are wrong, and the mode is invariant then', async () => {
    const platform = createNodePlatform({ log: () => undefined });
    const right = await startedChat(platform);
    const fast = await startedChat(platform, { numerics: 'fast' });
    expect([right, fast].map(({ info }) => [info.models[0]!.numerics, info.kernels!.replaced])).toEqual([['invariant', []], ['fast', []]]); // prettier-ignore
    const wrong = {
      linear_matrix: { 'linear/linear_matrix.wgsl': (text: string) => once(text, 'first < params.row_quads;', 'first < params.row_quads - STEP;') },
      half_rows: { 'linear/half_rows.wgsl': (text: string) => `${text}\nfn broken() -> u32 { return 1.5; }` },
    }; // prettier-ignore
    for (const [kernel, spoil] of Object.entries(wrong)) {
      const { info, answer } = await startedChat(spoiled(platform, spoil), { numerics: 'fast' });
      // Weights that it reads from textures may be at fault first.
      expect(info.kernels!.replaced.at(-1)).toMatchObject({ kernel, by: 'products without matrices' });
      expect(info.models[0]!.numerics).toBe('invariant');
      expect(answer).toBe(right.answer);
    }
  });
});
