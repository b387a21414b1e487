/** Time and back-pressure of event streams, on a response whose socket is a test's to fill; no real clock. */
import { EventEmitter } from 'node:events';
import type { Response } from 'express';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { EventStream } from '../../server/http/sse.ts';

/** As much of an Express response as EventStream uses. */
class FakeResponse extends EventEmitter {
  written = '';
  writableLength = 0;
  destroyed = false;
  ended = false;
  /** Milliseconds in which the client must take something; 0 = none. */
  timeout = 0;
  status = () => this;
  set = () => this;
  flushHeaders = () => {};

  setTimeout = (ms: number) => {
    this.timeout = ms;
    return this;
  };

  write(data: string): boolean {
    this.written += data;
    return true;
  }

  end(): void {
    this.ended = true;
    this.emit('close');
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function open() {
  const response = new FakeResponse();
  const stream = new EventStream(response as unknown as Response);
  stream.begin();
  return { response, stream };
}

test('a comment keeps the connection alive after 15 s of silence, and no sooner', async () => {
  const { response, stream } = open();
  vi.advanceTimersByTime(14_000);
  await stream.send({ a: 1 });
  vi.advanceTimersByTime(14_000);
  expect(response.written).toBe('data: {"a":1}\n\n');
  vi.advanceTimersByTime(1_000);
  expect(response.written).toBe('data: {"a":1}\n\n: ping\n\n');
  stream.end();
  vi.advanceTimersByTime(60_000);
  expect(response.written).toBe('data: {"a":1}\n\n: ping\n\n');
});

test('nothing is added to what waits for a client: that alone would look like a client that takes something', async () => {
  const { response } = open();
  response.writableLength = 1;
  vi.advanceTimersByTime(15_000);
  expect(response.written).toBe('');
  response.writableLength = 0;
  vi.advanceTimersByTime(15_000);
  expect(response.written).toBe(': ping\n\n');
});

test('send() waits while more than 1 MiB is queued, until it has drained, however long that takes a client that takes some of it', async () => {
  const { response, stream } = open();
  response.writableLength = (1 << 20) + 1;
  let sent = false;
  const sending = stream.send({}).then(() => (sent = true));
  await vi.advanceTimersByTimeAsync(300_000);
  expect([sent, response.destroyed, response.timeout]).toEqual([false, false, 60_000]);
  response.emit('drain');
  await sending;
  expect([response.listenerCount('drain'), response.timeout]).toEqual([0, 0]);
});

test('an answer that begins after its client has left starts no pings, which nothing would end', async () => {
  const response = new FakeResponse();
  response.destroy();
  const stream = new EventStream(response as unknown as Response);
  stream.begin();
  await stream.send({ late: true });
  expect([stream.begun, vi.getTimerCount(), response.written]).toEqual([true, 0, '']);
});

test('a client that takes nothing for a minute is given up', async () => {
  const { response, stream } = open();
  response.writableLength = 1 << 21;
  const sending = stream.send({});
  // As Node does, which sees what the socket takes.
  expect(response.timeout).toBe(60_000);
  response.destroy();
  await sending;
  await stream.send({ late: true });
  expect(response.written).not.toContain('late');
});
