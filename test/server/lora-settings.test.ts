import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseServerConfig } from '../../server/settings/config.ts';
import { SettingsError } from '../../server/settings/read.ts';
import { resolveModels } from '../../server/settings/sources.ts';
import { ID, TUNING, hubBench } from '../support/hub-bench.ts';

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'lora-'));
  onTestFinished(() => rmSync(made, { recursive: true }));
  return made;
}

const lorasOf = (argv: readonly string[], env: Readonly<Record<string, string>> = {}) => parseServerConfig(argv, env).engine.chat?.loras;

test('adapters are given one by one, in a list, or in the environment, which the command line replaces', () => {
  const [a, b] = [folder(), folder()];
  const both = [{ id: 'a', path: a }, { id: 'b', path: b }]; // prettier-ignore
  expect(lorasOf(['--lora', `a=${a}`, `--lora=b=${b}`])).toEqual(both);
  expect(lorasOf(['--lora', `a=${a},b=${b}`])).toEqual(both);
  expect(lorasOf([], { PARLEY_LORA: `a=${a},b=${b}` })).toEqual(both);
  expect(lorasOf(['--lora', `b=${b}`], { PARLEY_LORA: `a=${a}` })).toEqual([both[1]]);
  expect(lorasOf([])).toBeUndefined();
});

describe('of the hub', () => {
  const bench = hubBench();
  const ADAPTER = new Map(
    ['adapter_config.json', 'adapter_model.safetensors', 'README.md', 'tokenizer.json'].map((name) => [name, Buffer.from(name)]),
  );

  test('an adapter is fetched, both of its files and no others, and keeps its place beside one of a folder', async () => {
    bench.hub.commit(ADAPTER);
    const own = folder();
    const config = parseServerConfig(['--lora', `a=${own},b=${ID}`], {});
    const { engine } = await resolveModels(config, { env: bench.env(), tuning: TUNING });
    expect(engine.chat).toMatchObject({ path: config.engine.chat!.path, id: config.engine.chat!.id });
    const [first, second] = engine.chat!.loras!;
    expect(first).toEqual({ id: 'a', path: own });
    expect([second!.id, readdirSync(second!.path).sort()]).toEqual(['b', ['adapter_config.json', 'adapter_model.safetensors']]);
  });

  test('an adapter is no model, and what is nowhere is missing', async () => {
    bench.hub.commit(ADAPTER);
    const resolve = (...argv: string[]) => resolveModels(parseServerConfig(argv, {}), { env: bench.env(), tuning: TUNING });
    await expect(resolve('--chat-model', ID)).rejects.toThrow(`${ID} is a LoRA adapter and no model; it goes with its base model`);
    await expect(resolve('--lora', 'a=./nowhere')).rejects.toThrow('no such file or folder: ./nowhere');
  });
});

test('other lists are still those of the last flag', () => {
  expect(parseServerConfig(['--chat-alias', 'x', '--chat-alias', 'y'], {}).listeners[0]!.aliases).toEqual(['y']);
});

test.each([
  { argv: ['--lora', 'nothing'], message: '--lora nothing: must be NAME=MODEL,...' },
  { argv: ['--lora', 'a=.', '--lora', 'a=.'], message: 'two LoRA adapters have the name a; each needs its own' },
  {
    argv: ['--lora', 'parley-chat=.'],
    message: 'a LoRA adapter has the name parley-chat, which is an id of the chat model; give it another',
  },
  {
    argv: ['--chat-alias', 'gpt', '--lora', 'gpt=.'],
    message: 'a LoRA adapter has the name gpt, which is an id of the chat model; give it another',
  },
  { argv: ['--chat-model', 'none', '--lora', 'a=.'], message: '--lora a=.: there is no chat model that adapters could go with' },
])('refuses $argv', ({ argv, message }) => {
  expect(() => parseServerConfig(argv, {})).toThrow(new SettingsError(message));
});
