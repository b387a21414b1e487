/** EngineClient and serveEngine over a real MessageChannel, so that what travels is what a structured clone keeps. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ChatEvent, ChatRequest } from '../../engine/api.ts';
import { connectEngine } from '../../engine/client.ts';
import { EngineError } from '../../engine/errors.ts';
import { serveEngine } from '../../engine/host.ts';
import type { HostMessage, MessagePortLike } from '../../engine/host.ts';
import { collect } from '../support/collect.ts';
import { FAKE_INFO, FakeEngine } from '../support/fake-engine.ts';
import type { FakeOptions } from '../support/fake-engine.ts';
import { until } from '../support/listeners.ts';

const CHAT: ChatRequest = { messages: [{ role: 'user', content: 'Hi' }], sampling: {} };
const never = new AbortController().signal;

function portOf(port: MessagePort, seen?: unknown[]): MessagePortLike & { close: () => void } {
  const closers: (() => void)[] = [];
  return {
    post: (message, transfer) => port.postMessage(message, [...(transfer ?? [])]),
    onMessage: (callback) => {
      port.onmessage = ({ data }) => {
        seen?.push(data);
        callback(data);
      };
    },
    onClose: (callback) => void closers.push(callback),
    close: () => closers.forEach((closer) => closer()),
  };
}

/** Three deltas a call; all calls that wait move on together, as the sequences of one batch do. */
class SteppedEngine extends FakeEngine {
  #sleepers: (() => void)[] = [];

  get waiting(): number {
    return this.#sleepers.length;
  }

  step(): void {
    const sleepers = this.#sleepers;
    this.#sleepers = [];
    for (const wake of sleepers) wake();
  }

  override async *chat(): AsyncGenerator<ChatEvent> {
    for (let i = 0; i < 3; i++) {
      await new Promise<void>((resolve) => this.#sleepers.push(resolve));
      yield { type: 'delta', index: 0, text: 'x', tokens: 1 };
    }
  }
}

const connectFake = (options: FakeOptions = {}) => connect(new FakeEngine(options));

async function connect<E extends FakeEngine>(engine: E) {
  const { port1, port2 } = new MessageChannel();
  const seen: HostMessage[] = [];
  const clientPort = portOf(port1, seen);
  const hostPort = portOf(port2);
  const log: string[] = [];
  serveEngine(engine, hostPort, (line) => log.push(line));
  const client = connectEngine(clientPort);
  onTestFinished(async () => {
    hostPort.close();
    port1.close();
    port2.close();
  });
  await client.ready;
  return { client, engine, seen, clientPort, log };
}

describe('calls', () => {
  test('return the value or the error of methods that have only one', async () => {
    const { client, engine } = await connectFake();
    expect(await client.tokenize({ prompt: 'Hi' })).toEqual([1, 72, 105]);
    expect(await client.detokenize([72, 105])).toBe('Hi');
    await client.flushCache();
    expect(engine.flushes).toBe(1);
    await expect(client.detokenize([1e9])).rejects.toMatchObject({ code: 'invalid_request', param: 'tokens' });
  });

  test('carry every event of the three methods, audio included', async () => {
    const { client, engine } = await connectFake();
    expect(client.info()).toEqual(FAKE_INFO);
    const chat = await collect(client.chat({ ...CHAT, n: 2 }, never));
    expect(chat).toEqual(await collect(new FakeEngine().chat({ ...CHAT, n: 2 }, never)));
    const request = { text: 'One. Two. Three. Four. Five. Six. Seven.', voice: 'oni', seed: 5 };
    const speech = await collect(client.synthesize(request, never));
    expect(speech).toEqual(await collect(new FakeEngine().synthesize(request, never)));
    const heard = { samples: Float32Array.from({ length: 16000 }, (_, i) => i / 16000), language: 'de' };
    const transcript = await collect(client.transcribe(heard, never));
    expect(transcript.at(-1)).toMatchObject({ text: 'Heard 1.00 seconds.' });
    expect(engine.transcriptions[0]!.samples).toEqual(heard.samples);
  });

  test('that one step moves forward travel in one message', async () => {
    const engine = new SteppedEngine();
    const { client, seen } = await connect(engine);
    const running = Array.from({ length: 16 }, () => collect(client.chat(CHAT, new AbortController().signal)));
    await until(() => engine.waiting === 16);
    for (let step = 1; step <= 3; step++) {
      seen.length = 0;
      engine.step();
      await until(() => engine.waiting === 16 || step === 3);
      await until(() => seen.some(({ type }) => type === 'news'));
      // The last step also brings the 16 ends.
      expect(seen.flatMap((message) => (message.type === 'news' ? [message.news.length] : []))).toEqual([step === 3 ? 32 : 16]);
    }
    expect((await Promise.all(running)).every((events) => events.length === 3)).toBe(true);
  });

  test('keep code, param, details and message of an error', async () => {
    const failWith = new EngineError('context_length_exceeded', 'too long', {
      param: 'messages',
      details: { promptTokens: 9, contextLength: 8 },
    });
    const { client } = await connectFake({ failAfter: 2, failWith });
    const got: ChatEvent[] = [];
    const error = await (async () => {
      for await (const event of client.chat(CHAT, never)) got.push(event);
    })().catch((e: unknown) => e);
    expect(got).toHaveLength(2);
    expect(error).toBeInstanceOf(EngineError);
    expect(error).toMatchObject({
      code: 'context_length_exceeded',
      message: 'too long',
      param: 'messages',
      details: { promptTokens: 9, contextLength: 8 },
    });
  });

  test('turn a bug into `internal` and log its stack on the host', async () => {
    const { client, log } = await connectFake({ failAfter: 0, failWith: new TypeError('x is not a function') });
    await expect(collect(client.chat(CHAT, never))).rejects.toMatchObject({ code: 'internal', message: 'x is not a function' });
    expect(log[0]).toMatch(/engine bug in chat: TypeError: x is not a function\n\s+at/);
  });

  test('log an assertion that does not hold as the bug that it is, and none of the errors that say everything', async () => {
    const broken = await connectFake({ failAfter: 2, failWith: new EngineError('internal', 'assertion failed: 1 is 2') });
    await expect(collect(broken.client.chat(CHAT, never))).rejects.toMatchObject({ code: 'internal' });
    expect(broken.log).toEqual([expect.stringMatching(/engine bug in chat: .*assertion failed: 1 is 2\n\s+at/)]);
    const full = await connectFake({ failAfter: 0, failWith: new EngineError('queue_full', 'full') });
    await expect(collect(full.client.chat(CHAT, never))).rejects.toMatchObject({ code: 'queue_full' });
    expect(full.log).toEqual([]);
  });

  test('that were answered in full are read to their end, also by a reader who is slower than the engine dies', async () => {
    const { client, clientPort, seen } = await connectFake();
    const iterator = client.chat(CHAT, never)[Symbol.asyncIterator]();
    const first = await iterator.next();
    await until(() => seen.some((message) => message.type === 'news' && message.news.some(({ type }) => type === 'end')));
    clientPort.close();
    const rest = await collect({ [Symbol.asyncIterator]: () => iterator });
    expect([first.value, ...rest]).toEqual(await collect(new FakeEngine().chat(CHAT, never)));
    await expect(collect(client.chat(CHAT, never))).rejects.toMatchObject({ code: 'device_lost' });
  });
});

describe('back-pressure and abort', () => {
  test('a reader that stops stops its producer within a window, and gets the rest when it goes on', async () => {
    const words = Array.from({ length: 1000 }, (_, i) => ` ${i}`);
    const { client, engine } = await connectFake({ words });
    const iterator = client.chat(CHAT, never)[Symbol.asyncIterator]();
    await iterator.next();
    await collect(client.transcribe({ samples: new Float32Array(1) }, never));
    const paused = engine.handedOut;
    expect(paused).toBeLessThan(64 + 10);
    // Behind whatever the producer would still have sent.
    await client.tokenize({ prompt: 'Hi' });
    expect(engine.handedOut).toBe(paused);
    const texts: string[] = [];
    for (let item = await iterator.next(); !item.done; item = await iterator.next())
      if (item.value.type === 'delta') texts.push(item.value.text);
    expect(texts).toEqual(words);
  });

  test('an abort reaches the engine, also while the reader is not reading', async () => {
    const { client, engine } = await connectFake({ words: Array.from({ length: 1000 }, () => 'x') });
    const controller = new AbortController();
    const iterator = client.chat(CHAT, controller.signal)[Symbol.asyncIterator]();
    await iterator.next();
    controller.abort();
    await until(() => engine.aborted === 1);
    expect(engine.status().running).toBe(0);
    await expect(iterator.next()).rejects.toMatchObject({ code: 'aborted' });
  });

  test('a reader that leaves the loop aborts', async () => {
    const { client, engine } = await connectFake({ words: Array.from({ length: 1000 }, () => 'x') });
    for await (const event of client.chat(CHAT, never)) if (event.type === 'delta') break;
    await until(() => engine.aborted === 1);
  });

  test('a signal that is already aborted starts nothing', async () => {
    const { client, engine } = await connectFake();
    await expect(collect(client.chat(CHAT, AbortSignal.abort()))).rejects.toMatchObject({ code: 'aborted' });
    expect(engine.chats).toHaveLength(0);
  });

  test('the reason of an abort is what the reader sees, if it is an EngineError', async () => {
    const { client } = await connectFake({ delay: 50 });
    const controller = new AbortController();
    const reading = collect(client.chat(CHAT, controller.signal));
    controller.abort(new EngineError('shutting_down', 'draining'));
    await expect(reading).rejects.toMatchObject({ code: 'shutting_down' });
  });
});

describe('status and the end', () => {
  test('snapshots arrive by themselves', async () => {
    const { client, engine } = await connectFake();
    expect(client.status().state).toBe('ready');
    engine.handedOut = 41;
    await until(() => client.status().generatedTokens === 41);
  });

  test('a closed port ends running calls and refuses new ones', async () => {
    const { client, clientPort } = await connectFake({ delay: 10_000 });
    const running = collect(client.chat(CHAT, never));
    clientPort.close();
    await expect(running).rejects.toMatchObject({ code: 'device_lost' });
    await expect(collect(client.chat(CHAT, never))).rejects.toMatchObject({ code: 'device_lost' });
    expect(client.status().state).toBe('lost');
  });

  test('where nobody starts it again, nobody says so', async () => {
    const { port1 } = new MessageChannel();
    const port = portOf(port1);
    const client = connectEngine(port, 'the engine in this tab stopped');
    port.close();
    port1.close();
    await expect(client.ready).rejects.toMatchObject({ code: 'device_lost', message: 'the engine in this tab stopped' });
  });

  test('close() aborts what runs and closes the engine', async () => {
    const { client, engine } = await connectFake({ delay: 10_000 });
    const running = collect(client.chat(CHAT, never)).catch((error: unknown) => error);
    await until(() => engine.chats.length === 1);
    await client.close();
    expect(engine.closed).toBe(true);
    expect(await running).toMatchObject({ code: expect.stringMatching(/aborted|device_lost/) });
  });
});
