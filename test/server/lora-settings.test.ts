import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseServerConfig } from '../../server/settings/config.ts';
import { SettingsError } from '../../server/settings/read.ts';

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

test('other lists are still those of the last flag', () => {
  expect(parseServerConfig(['--chat-alias', 'x', '--chat-alias', 'y'], {}).listeners[0]!.aliases).toEqual(['y']);
});

test.each([
  { argv: ['--lora', 'nothing'], message: '--lora nothing: must be NAME=PATH,...' },
  {
    argv: ['--lora', 'a=owner/name'],
    message: '--lora a=owner/name: there is no folder owner/name; adapters are read from folders and not fetched from the hub',
  },
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
