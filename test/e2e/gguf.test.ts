/** A GGUF file as a server's chat model, and bad ones, which end it with one line. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { postJson, send } from '../support/listeners.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import type { Spawned } from '../support/server-process.ts';

const MAIN = new URL('../../server/main.ts', import.meta.url);
const TINY = fileURLToPath(new URL('../fixtures/gguf/tiny/', import.meta.url));
const ADAPTER = process.env['PARLEY_ADAPTER'];

function serve(model: string): Spawned {
  const server = spawnAt(MAIN, [
    '--chat-model',
    model,
    '--speech-model=none',
    '--transcription-model=none',
    ...(ADAPTER === undefined ? [] : ['--adapter', ADAPTER]),
  ]);
  onTestFinished(() => void server.child.kill('SIGKILL'));
  return server;
}

test('a GGUF file is served by its name without the quantisation, with its format', async () => {
  const { urls, lines } = await whenReady(serve(join(TINY, 'qwen3-Q4_K_M.gguf')));
  expect(lines.join('\n')).toMatch(/qwen3 +.*qwen3, GGUF Q4_K_M, /);
  const [model] = (await send(`${urls['chat']}/models`)).json.data as { id: string; meta: object }[];
  expect(model).toMatchObject({ id: 'qwen3', meta: { architecture: 'qwen3', format: 'GGUF Q4_K_M' } });
  const body = { model: 'qwen3', messages: [{ role: 'user', content: 'the boat' }], max_tokens: 8, temperature: 0, ignore_eos: true };
  const answer = await postJson(`${urls['chat']}/chat/completions`, body);
  expect(answer.status).toBe(200);
  expect(answer.json.usage.completion_tokens).toBe(8);
});

test.each([
  [
    'an architecture that is not known',
    'llama',
    'lamma',
    /its architecture is "lamma"; GGUF files of llama, qwen2, [a-z0-9_, -]+ are read/,
  ],
  ['a setting that is not', 'llama.block_count', 'llama.block_cound', /llama.block_count is missing/],
  [
    'a tensor that is not',
    'blk.0.ffn_up.weight',
    'blk.0.ffn_ap.weight',
    /the checkpoint has 1 tensors this architecture does not use|ffn_up|up_proj.weight is missing/,
  ],
] as const)('%s ends it with 2 and a line that names the file', async (_, from, to, message) => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'bad.gguf');
  const bytes = readFileSync(join(TINY, 'llama-Q8_0.gguf'));
  bytes.write(to, bytes.indexOf(from), 'latin1');
  writeFileSync(path, bytes);
  const { exit, lines } = serve(path);
  expect(await exit).toBe(2);
  // The plan for memory is made of headers, before tensors are read.
  const said = lines.filter((line) => !line.startsWith('memory '));
  expect(said).toHaveLength(1);
  expect(said[0]).toContain(path);
  expect(said[0]).toMatch(message);
});
