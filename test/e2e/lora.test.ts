/** A whole server with LoRA adapters, asked over HTTP: for the model, for each adapter, and for all of them at once. */
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import type { Running } from '../support/server-process.ts';

const FIXTURES = join(fileURLToPath(new URL('../..', import.meta.url)), 'test', 'fixtures');
const lora = (name: string): string => join(FIXTURES, 'lora-tiny-random', name);
const golden = (folder: string) =>
  JSON.parse(readFileSync(join(folder, 'golden.json'), 'utf8')) as { readonly prompt: number[]; readonly greedy: number[] };
const MAIN = new URL('../../server/main.ts', import.meta.url);

let folder: string;
let server: Running;
let url: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lora-'));
  cpSync(join(FIXTURES, 'llama-tiny-random', 'llama'), folder, { recursive: true });
  writeNumberTokenizer(folder, 160);
  const others = ['--speech-model=none', '--transcription-model=none', '--max-running-requests=8', '--context-length=256', '--dtype=f32'];
  const loras = ['--lora', `a=${lora('queries-values')}`, '--lora', `b=${lora('all-linear')}`];
  server = await whenReady(spawnAt(MAIN, [`--chat-model=${folder}`, '--served-model-name=base', ...others, ...loras]));
  url = server.urls['chat']!;
}, 120_000);
afterAll(async () => {
  server.child.kill('SIGTERM');
  await server.exit;
  rmSync(folder, { recursive: true });
});

interface Completion {
  readonly model: string;
  readonly choices: readonly { readonly text: string }[];
}

/** Greedy tokens that a model continues a prompt with. */
async function complete(model: string, prompt: readonly number[], maxTokens = 64): Promise<Completion> {
  const body = JSON.stringify({ model, prompt, max_tokens: maxTokens, temperature: 0, ignore_eos: true });
  const response = await fetch(`${url}/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  expect(response.status).toBe(200);
  return (await response.json()) as Completion;
}

const tokensOf = ({ choices }: Completion): readonly number[] => choices[0]!.text.trim().split(/\s+/).map(Number);

test('the list of models has both, with the model that they go with as parent', async () => {
  const { data } = (await (await fetch(`${url}/models`)).json()) as { data: { id: string; parent: string | null; root: string }[] };
  expect(data.map(({ id, parent, root }) => [id, parent, root])).toEqual([
    ['base', null, 'base'],
    ['a', 'base', 'a'],
    ['b', 'base', 'b'],
  ]);
  expect(((await (await fetch(`${url}/models/a`)).json()) as { parent: string }).parent).toBe('base');
  expect(server.lines).toContainEqual(expect.stringMatching(/^LoRA adapters +a, b$/));
});

test('the model and both adapters answer as PyTorch does, in turn and all at once', async () => {
  const expected = {
    base: golden(join(FIXTURES, 'llama-tiny-random', 'llama')),
    a: golden(lora('queries-values')),
    b: golden(lora('all-linear')),
  };
  for (const [model, { prompt, greedy }] of Object.entries(expected)) {
    const completion = await complete(model, prompt);
    expect(completion.model).toBe(model);
    expect(tokensOf(completion)).toEqual(greedy);
  }
  const asked = Array.from({ length: 15 }, (_, i) => (['base', 'a', 'b'] as const)[i % 3]!);
  const answers = await Promise.all(asked.map((model) => complete(model, expected[model].prompt)));
  answers.forEach((answer, i) => expect(tokensOf(answer)).toEqual(expected[asked[i]!].greedy));
});

test('a conversation, streamed, names the adapter that answers', async () => {
  const body = JSON.stringify({ model: 'b', messages: [{ role: 'user', content: '5 6 7' }], max_tokens: 4, temperature: 0, stream: true });
  const response = await fetch(`${url}/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const chunks = text.split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)) as { model: string }); // prettier-ignore
  expect(new Set(chunks.map(({ model }) => model))).toEqual(new Set(['b']));
});

test('another name is refused, and the adapters are among those that are served', async () => {
  const body = JSON.stringify({ model: 'c', prompt: [5] });
  const response = await fetch(`${url}/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ error: { message: "the model 'c' is not served here; served: 'base', 'a', 'b'" } });
});
