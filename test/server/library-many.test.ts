/** Many calls of the library at once, over a fake engine. */
import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { APIUserAbortError } from '../../library/errors.ts';
import { createParley } from '../../library/parley.ts';
import { TAB_ENCODERS } from '../../library/tab-audio.ts';
import type { Parley } from '../../library/types.ts';
import { collect } from '../support/collect.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import type { FakeOptions } from '../support/fake-engine.ts';
import { nodeWarnings } from '../support/node-warnings.ts';

const MESSAGES = [{ role: 'user' as const, content: 'Hi' }];

function start(options: FakeOptions = {}): { readonly parley: Parley; readonly engine: FakeEngine } {
  const engine = new FakeEngine(options);
  const decode = (): Promise<never> => Promise.reject(new Error('no recording is given here'));
  return {
    engine,
    parley: createParley({ engine: () => engine, encoders: TAB_ENCODERS, speechFormat: 'wav', decode, close: async () => {} }),
  };
}

test.each([undefined, new AbortController().signal])(
  'many calls at once make Node warn of no leak, with a signal in common too: %o',
  async (signal) => {
    const warnings = nodeWarnings();
    const { parley } = start();
    const calls = Array.from({ length: 20 }, () => parley.chat.completions.create({ messages: MESSAGES }, signal && { signal }));
    expect(await Promise.all(calls)).toHaveLength(20);
    expect(warnings).toEqual([]);
  },
);

test('a signal that many calls have in common ends those that still run', async () => {
  const { parley, engine } = start({ delay: 1 });
  const controller = new AbortController();
  const { signal } = controller;
  const ask = (more: object): Promise<unknown> => parley.chat.completions.create({ messages: MESSAGES, ...more }, { signal });
  const streams = (await Promise.all(Array.from({ length: 12 }, () => ask({ stream: true })))) as AsyncIterable<unknown>[];
  await collect(streams[0]!);
  controller.abort();
  await Promise.all(streams.slice(1).map((stream) => collect(stream)));
  expect(engine.aborted).toBe(11);
  await expect(ask({})).rejects.toBeInstanceOf(APIUserAbortError);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
