/** The rules that grade chat answers: what they must let through and what they must not. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { findJson, isRepetitive, lastNumber, problemOf } from '../../training/chat/grade.ts';
import type { TestPrompt } from '../../training/chat/grade.ts';

const FILE = fileURLToPath(new URL('../../training/chat/test_prompts.jsonl', import.meta.url));
const EXCLUDED = fileURLToPath(new URL('../../training/chat/exclude.txt', import.meta.url));
const prompts = readFileSync(FILE, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line) as TestPrompt); // prettier-ignore
const find = (text: string): TestPrompt => prompts.find(({ turns }) => turns.at(-1)!.includes(text))!;
const problem = (text: string, answer: string, ended = true): string | undefined => problemOf(find(text), { text: answer, ended });

test('120 prompts in 12 groups of 10, each ending with the user, each with a rule', () => {
  const groups = new Map<string, number>();
  for (const { group, turns, all, cased, number, json } of prompts) {
    groups.set(group, (groups.get(group) ?? 0) + 1);
    expect(turns.length % 2).toBe(1);
    expect(all ?? cased ?? number ?? json).toBeDefined();
  }
  expect([...groups.values()]).toEqual(Array.from({ length: 12 }, () => 10));
});

test('no test prompt may be trained on: exclude.txt has the last turn of each', () => {
  const excluded = new Set(readFileSync(EXCLUDED, 'utf8').split('\n'));
  expect(prompts.map(({ turns }) => turns.at(-1)!).filter((turn) => !excluded.has(turn))).toEqual([]);
});

test.each([
  ['capital of Italy', 'The capital of Italy is Rome.'],
  ['20 - 6 =', '20 - 6 = 14.'],
  ['9 apples', 'Five apples are left.'],
  ['Lena is 31', '{"name": "Lena", "age": 31}'],
  ['JSON array', 'Here it is: ["apple", "pear", "plum"]'],
  ['capital letters', 'GOOD MORNING EVERYONE'],
  ['flombaster', 'I do not know the word "flombaster".'],
])('lets through a sensible answer to %s', (text, answer) => {
  expect(problem(text, answer)).toBeUndefined();
});

test.each([
  ['capital of Italy', '', 'empty'],
  ['capital of Italy', ' \n.', 'empty'],
  ['capital of Italy', 'Bananas are yellow.', 'lacks'],
  ['capital of Italy', 'Rome<|im_end|>', 'special tokens'],
  ['capital of Italy', 'It is Rome and it is Rome and it is Rome and it is Rome.', 'repeats'],
  ['20 - 6 =', '20 - 6 = 20.', '20 for 14'],
  ['20 - 6 =', 'I do not know.', 'undefined for 14'],
  ['Lena is 31', '{"name": "Mei", "age": 31}', 'JSON with name = Mei'],
  ['Lena is 31', '{"name": "Lena"}', 'JSON without age'],
  ['Lena is 31', '{"name": "Lena", "age": 31', 'no JSON'],
  ['capital letters', 'good morning everyone', 'in this case'],
  ['pirate and a parrot', 'A pirate had a parrot.', 'words only'],
  ['flombaster', 'A flombaster is a tool.', 'lacks'],
  ['Shorten this', 'The cat, which was very old and very tired, slept on the sofa all day long.', '16 words'],
])('rejects for %s the answer "%s"', (text, answer, reason) => {
  expect(problem(text, answer)).toContain(reason);
});

test('rejects an answer that was cut off', () => {
  expect(problem('capital of Italy', 'The capital of Italy is Rome.', false)).toBe('did not end');
});

test('notices what goes round in circles, not what only repeats a little', () => {
  expect(isRepetitive('the old man and the old man and the old man and the sea')).toBe(true);
  expect(isRepetitive('no no no no')).toBe(true);
  expect(isRepetitive('haaaaaaaaaaaaa')).toBe(true);
  expect(isRepetitive('Once there was a fox. The fox was hungry, and the fox went to the river to look for fish.')).toBe(false);
  expect(isRepetitive('')).toBe(false);
});

test('reads numbers and JSON out of an answer', () => {
  expect(lastNumber('7 plus 5 is twelve.')).toBe(12);
  expect(lastNumber('It is -3.5')).toBe(-3.5);
  expect(lastNumber('I do not know')).toBeUndefined();
  expect(findJson('Sure: {"a": [1]} there')).toEqual({ a: [1] });
  expect(findJson('{"a": }')).toBeUndefined();
});
