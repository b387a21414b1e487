/** Requests that a connection sends ahead of the answers (pipelining): what one client sends so holds up no other. */
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listen } from '../../server/listener/listen.ts';
import { errorBody } from '../support/each-listener.ts';

describe('requests that a connection sends ahead of the answers', () => {
  const AHEAD = 'GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n';

  /** Sends `text` to a listener in one piece; what came back when the connection is closed. */
  const exchange = async (answer: RequestListener, text: string): Promise<string> => {
    const listener = await listen(answer, { host: '127.0.0.1', port: 0 });
    onTestFinished(() => listener.destroy());
    const socket = connect(listener.port, '127.0.0.1');
    let answers = '';
    socket.on('data', (chunk) => (answers += chunk.toString()));
    socket.write(text);
    await once(socket, 'close');
    return answers;
  };

  test('start one in each turn of the event loop, so that others are served in between, and are answered in order', async () => {
    let [inTurn, most, count] = [0, 0, 0];
    const answers = await exchange(
      (_request, response) => {
        most = Math.max(most, ++inTurn);
        setImmediate(() => (inTurn = 0));
        response.end(`answer ${++count};`);
      },
      `${AHEAD.repeat(50)}GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`,
    );
    expect(most).toBe(1);
    expect(answers.match(/answer \d+(?=;)/g)).toEqual(Array.from({ length: 51 }, (_, i) => `answer ${i + 1}`));
  });

  test('are a hundred at most; with more the connection is closed, and none of the others starts', async () => {
    let started = 0;
    const answers = await exchange(() => started++, AHEAD.repeat(1000));
    expect(answers).toMatch(/^HTTP\/1.1 400 /);
    expect(JSON.parse(answers.split('\r\n\r\n')[1] ?? '')).toEqual(errorBody('invalid_value'));
    expect(started).toBeLessThanOrEqual(101);
  });

  test('are refused in words where the answers to others wait behind the first', async () => {
    let count = 0;
    let begun = (): void => {};
    const waiting = new Promise<void>((resolve) => (begun = resolve));
    const listener = await listen(
      (_request, response) => {
        if (++count === 1) return;
        response.end('later');
        if (count === 51) begun();
      },
      { host: '127.0.0.1', port: 0 },
    );
    onTestFinished(() => listener.destroy());
    const socket = connect(listener.port, '127.0.0.1');
    let answers = '';
    socket.on('data', (chunk) => (answers += chunk.toString()));
    socket.write(AHEAD.repeat(51));
    await waiting;
    socket.write(AHEAD.repeat(100));
    await once(socket, 'close');
    expect(answers).toMatch(/^HTTP\/1.1 400 /);
  });
});

describe('a client that is refused while it still sends, and reads only then', () => {
  const MORE = 'x'.repeat(4 << 20);

  test.each([
    ['what is no request', `HELLO\r\n\r\n${MORE}`, 400],
    ['headers that are too large', `GET /health HTTP/1.1\r\nhost: localhost\r\nx: ${MORE}\r\n\r\n`, 431],
    ['a body that is none', `POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n${MORE}`, 400],
    ['a CONNECT', `CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n${MORE}`, 405],
    ['requests ahead', 'GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(50_000), 400],
  ])('%s: gets to read why', async (_, text, status) => {
    const listener = await listen(() => {}, { host: '127.0.0.1', port: 0 });
    onTestFinished(() => listener.destroy());
    const socket = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true });
    const failures: Error[] = [];
    socket.on('error', (error) => failures.push(error));
    // A connection that is reset takes no more, so this would not end in order.
    await new Promise((resolve) => {
      socket.once('close', resolve);
      socket.end(text, () => resolve(undefined));
    });
    let answer = '';
    for await (const chunk of socket) answer += String(chunk);
    expect(failures).toEqual([]);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });
});
