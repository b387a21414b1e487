/** What HTTP cannot carry and a program can: bodies that are no JSON, streams that nobody reads, callbacks that throw. */
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { writeWav } from '../../engine/audio/wav.ts';
import { engineSettings } from '../../library/load-options.ts';
import { Parley as loadInNode } from '../../library/node.ts';
import { createParley } from '../../library/parley.ts';
import { TAB_ENCODERS, decodeSound } from '../../library/tab-audio.ts';
import type { ChatCompletionCreateParamsNonStreaming, Parley } from '../../library/types.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import type { FakeOptions } from '../support/fake-engine.ts';

const MESSAGES = [{ role: 'user' as const, content: 'Hi' }];
const SECOND = new Uint8Array(writeWav(new Float32Array(16_000).fill(0.1), 16_000));

interface Started {
  readonly parley: Parley;
  readonly engine: FakeEngine;
  /** How many samples are held. */
  held(): number;
}

function start(options: FakeOptions = {}): Started {
  const engine = new FakeEngine(options);
  let held = 0;
  const parley = createParley({
    engine: () => engine,
    encoders: TAB_ENCODERS,
    speechFormat: 'wav',
    decode: async (bytes) => {
      const samples = await decodeSound(bytes);
      held++;
      return { samples, discard: async () => void held-- };
    },
    close: async () => {},
  });
  return { parley, engine, held: () => held };
}

const chatting =
  ({ parley }: Started) =>
  (more: object): Promise<unknown> =>
    parley.chat.completions.create({ messages: MESSAGES, ...more } as ChatCompletionCreateParamsNonStreaming);
const hearing =
  ({ parley }: Started) =>
  (file: unknown, more: object = {}): Promise<unknown> =>
    parley.audio.transcriptions.create({ file: file as Blob, ...more });

describe('a body', () => {
  const endless: Record<string, unknown> = {};
  endless['self'] = endless;

  test('that no JSON can be is refused as the listeners refuse what is too deep, too long or of another type', async () => {
    const started = start();
    const [chat, transcribe] = [chatting(started), hearing(started)];
    const deep = { status: 400, code: 'invalid_json', message: '400 the body is nested deeper than 64 levels' };
    const format = { type: 'json_schema', json_schema: { name: 'a', schema: endless } };
    await expect(chat({ chat_template_kwargs: endless })).rejects.toMatchObject(deep);
    await expect(chat({ response_format: format })).rejects.toMatchObject(deep);
    await expect(transcribe(SECOND, { chunking_strategy: endless })).rejects.toMatchObject(deep);
    const long = { status: 400, message: '400 the body has more than 200000 elements' };
    await expect(chat({ chat_template_kwargs: { a: Array.from({ length: 200_002 }, () => 1) } })).rejects.toMatchObject(long);
    const big = { status: 400, code: 'invalid_type', param: 'chat_template_kwargs' };
    await expect(chat({ chat_template_kwargs: { a: [5n] } })).rejects.toMatchObject(big);
    await expect(transcribe(SECOND, { temperature: 5n })).rejects.toMatchObject({ status: 400, param: 'temperature' });
    // JSON would make null of it, which stands for an absent field.
    await expect(chat({ temperature: Number.NaN })).rejects.toMatchObject({ status: 400, param: 'temperature' });
    expect(started.engine.chats).toHaveLength(0);
  });

  test('gets to the engine as plain data, as JSON would have made it', async () => {
    const started = start();
    const properties = new Proxy({ a: { type: 'string', parse() {} } }, {});
    const parameters = { toJSON: () => ({ type: 'object', properties, [Symbol('kind')]: 1 }) };
    const kwargs = new Proxy({ at: new Date(0), none: undefined, deep: new Proxy({ one: 1 }, {}) }, {});
    await chatting(started)({ tools: [{ type: 'function', function: { name: 'f', parameters } }], chat_template_kwargs: kwargs });
    // What cannot be cloned could not be sent.
    const { tools, templateKwargs } = structuredClone(started.engine.chats[0])!;
    expect(tools).toMatchObject([{ name: 'f', parameters: { type: 'object', properties: { a: { type: 'string' } } } }]);
    expect(templateKwargs).toEqual({ at: '1970-01-01T00:00:00.000Z', deep: { one: 1 } });
  });
});

describe('a recording', () => {
  test('is the bytes of whatever a stream gives, and never its text', async () => {
    const transcribe = hearing(start());
    const shorts = new Int16Array(SECOND.slice().buffer);
    const whole = await transcribe(SECOND);
    expect(await transcribe(Readable.from([shorts.subarray(0, 500), shorts.subarray(500)]))).toEqual(whole);
    await expect(transcribe(Readable.from(['RIFF']))).rejects.toMatchObject({
      message: "400 'file' must be a stream of bytes, got string",
      code: 'invalid_type',
    });
  });

  test('whose bytes were given away is empty', async () => {
    const transcribe = hearing(start());
    const gone = SECOND.slice();
    const { buffer } = gone;
    structuredClone(buffer, { transfer: [buffer] });
    for (const file of [gone, buffer]) await expect(transcribe(file)).rejects.toMatchObject({ status: 400, param: 'file' });
  });
});

describe('a stream that is not read', () => {
  const words = Array.from({ length: 50 }, (_, i) => ` ${i}`);

  test('ends its work when it is left', async () => {
    const { parley, engine } = start({ words, delay: 1 });
    const stream = () => parley.chat.completions.create({ messages: MESSAGES, stream: true });
    await (await stream()).toReadableStream().cancel();
    await expect.poll(() => engine.aborted).toBe(1);
    const left = await stream();
    await left[Symbol.asyncIterator]().return!();
    await expect.poll(() => engine.aborted).toBe(2);
    expect(left.controller.signal.aborted).toBe(true);
  });

  test('lets go of its samples when it is aborted', async () => {
    const { parley, held } = start();
    const controller = new AbortController();
    await parley.audio.transcriptions.create({ file: SECOND, stream: true }, { signal: controller.signal });
    expect(held()).toBe(1);
    controller.abort();
    await expect.poll(held).toBe(0);
  });
});

describe('loading', () => {
  test('goes on where log throws', async () => {
    const log = (): void => {
      throw new RangeError('mine');
    };
    const parley = await loadInNode.load({ chat: 'models/parley-chat', log });
    await parley.close();
  });

  test('refuses settings that JSON has no words for by their names', () => {
    const endless: unknown[] = [];
    endless.push(endless);
    const settings = (engine: unknown) => () => engineSettings({ chat: 'a', engine: engine as Record<string, unknown> });
    expect(settings({ contextLength: 512n })).toThrow("400 'engine.contextLength' must be an integer of at least 16, got 512");
    expect(settings({ adapters: endless })).toThrow("400 'engine.adapters' must be an array of texts, got ");
    expect(settings(null)()).toEqual({});
    expect(structuredClone(settings({ ppSplit: new Proxy([1, 2], {}) })())).toEqual({ ppSplit: [1, 2] });
  });
});
