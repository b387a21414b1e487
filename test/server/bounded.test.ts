/** Fields that may be long: what is looked at of them, and what is kept of their mistakes. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { entries, list } from '../../server/body/bounded.ts';
import { completionSchema } from '../../server/chat/completion-schema.ts';
import { chatSchema } from '../../server/chat/schema.ts';
import { detokenizeSchema, tokenizeSchema } from '../../server/chat/token-schema.ts';

const MANY = 10_000;
const many = (value: unknown): unknown[] => Array<unknown>(MANY).fill(value);

/** All mistakes that are kept, those of a union's ways too. */
function mistakes(issues: readonly z.core.$ZodIssue[]): number {
  return issues.reduce((sum, issue) => sum + 1 + (issue.code === 'invalid_union' ? issue.errors.reduce((all, way) => all + mistakes(way), 0) : 0), 0); // prettier-ignore
}

describe('a list', () => {
  test('is what its elements make of it', () => {
    const numbers = list(z.coerce.number(), (all) => all.min(1, 'is empty'));
    const texts = Array.from({ length: 1000 }, (_, i) => String(i));
    expect(numbers.parse(texts)).toEqual(texts.map(Number));
    expect(numbers.safeParse([]).error?.issues[0]?.message).toBe('is empty');
  });

  test('is looked at as far as its first mistake, which has its place', () => {
    let looked = 0;
    const counted = z.number().refine(() => ++looked > 0);
    const { error } = list(z.object({ a: counted })).safeParse([...Array<unknown>(1000).fill({ a: 1 }), ...many({ a: 'x' })]);
    expect(error?.issues).toMatchObject([{ path: [1000, 'a'], code: 'invalid_type' }]);
    expect(looked).toBeLessThan(1100);
  });
});

test('entries are counted before they are looked at', () => {
  let looked = 0;
  const few = entries(
    z.record(
      z.string(),
      z.number().refine(() => ++looked > 0),
    ),
    (all) => Object.keys(all).length <= 3,
    'too many',
  );
  expect(few.safeParse(Object.fromEntries(many(0).map((_, i) => [`k${i}`, i]))).error?.issues).toMatchObject([{ message: 'too many' }]);
  expect(looked).toBe(0);
  expect(few.parse({ a: 1 })).toEqual({ a: 1 });
});

test.each<[name: string, schema: z.ZodType, body: object]>([
  ['messages', chatSchema, { messages: many({}) }],
  ['parts of a message', chatSchema, { messages: [{ role: 'user', content: many({ type: 'x' }) }] }],
  ['calls', chatSchema, { messages: [{ role: 'assistant', tool_calls: many({}) }] }],
  ['modalities', chatSchema, { messages: [{ role: 'user', content: 'a' }], modalities: many(1) }],
  ['prompts', completionSchema, { prompt: many({}) }],
  ['tokens of a prompt', completionSchema, { prompt: many(-1) }],
  ['messages to tokenise', tokenizeSchema, { messages: many({}) }],
  ['tokens', detokenizeSchema, { tokens: many({}) }],
])('of the mistakes in %s few are kept', (_, schema, body) => {
  const { error } = schema.safeParse(body);
  expect(mistakes(error!.issues)).toBeLessThan(2000);
});
