/** Memory of uploads: counted as it comes, shared between addresses, never filled so far that nobody can finish. */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { writeWav } from '../../engine/audio/wav.ts';
import type { HttpError } from '../../server/http/errors.ts';
import { UploadBudget } from '../../server/body/upload-budget.ts';
import type { Upload, UploadLimits } from '../../server/body/upload-budget.ts';
import { formBody, postForm, send, startListeners, until } from '../support/listeners.ts';
import type { FormParts } from '../support/listeners.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import { tone } from '../support/wav-file.ts';

const MIB = 1 << 20;
const PATH = '/v1/audio/transcriptions';

/** A budget with a clock that the test moves. */
function rig(limits: Partial<UploadLimits> = {}) {
  const clock = { now: 0 };
  const budget = new UploadBudget({ maxBytes: 16 * MIB, ...limits }, () => clock.now);
  const open = (address: string, size: number) => {
    const seen: { upload?: Upload; paused: number; resumed: number; stopped?: HttpError } = { paused: 0, resumed: 0 };
    const upload = budget.open(address, size, {
      pause: () => void seen.paused++,
      resume: () => void seen.resumed++,
      stop: (error) => void (seen.stopped = error),
    });
    onTestFinished(() => upload.close());
    return Object.assign(seen, { upload });
  };
  return { clock, budget, open };
}

/** Sends until the upload is whole, or there is no room; returns whether it is whole. */
function pour(upload: Upload, upTo = upload.size): boolean {
  while (upload.received < upTo) {
    if (upload.waiting) return false;
    upload.take(Math.min(64 << 10, upTo - upload.received));
  }
  if (upload.received === upload.size) upload.complete();
  return true;
}

describe('the budget', () => {
  test('counts what came, not what was declared', () => {
    const { budget, open } = rig();
    for (let i = 0; i < 28; i++) open('1.1.1.1', 2 * MIB);
    // What a socket hands over at once is theirs.
    expect(budget.held).toBe(28 * (64 << 10));
    expect(pour(open('1.1.1.1', 2 * MIB).upload)).toBe(true);
    expect(budget.held).toBe(28 * (64 << 10) + 2 * MIB);
  });

  test('lets everybody finish, one after the other, however they take turns', () => {
    const { budget, open } = rig();
    const uploads = Array.from({ length: 12 }, (_, i) => open(`1.1.1.${i}`, 2 * MIB));
    const waiting = new Set(uploads);
    let most = 0;
    while (waiting.size > 0) {
      const before = [...waiting].reduce((total, { upload }) => total + upload.received, 0) - waiting.size * 1e9;
      for (const one of waiting) {
        if (!one.upload.waiting) one.upload.take(64 << 10);
        most = Math.max(most, budget.held);
        if (one.upload.received < one.upload.size) continue;
        one.upload.complete();
        one.upload.close();
        waiting.delete(one);
      }
      const after = [...waiting].reduce((total, { upload }) => total + upload.received, 0) - waiting.size * 1e9;
      expect(after).toBeGreaterThan(before);
    }
    expect(most).toBeLessThanOrEqual(8 * MIB);
    expect(most).toBeGreaterThan(5 * MIB);
    expect(budget.held).toBe(0);
  });

  test('keeps room for other addresses, however an address is written', () => {
    const { open } = rig();
    const greedy = ['::ffff:1.1.1.1', '1.1.1.1', '::ffff:1.1.1.1', '1.1.1.1'].map((address) => {
      const one = open(address, 2 * MIB);
      return { upload: one.upload, whole: pour(one.upload), seen: one };
    });
    expect(greedy.map(({ whole }) => whole)).toEqual([true, true, true, false]);
    expect(pour(open('2001:db8:1:2::5', 2 * MIB).upload)).toBe(true);
    greedy[0]!.upload.close();
    expect(greedy[3]!.seen.resumed).toBe(1);
    expect(pour(greedy[3]!.upload)).toBe(true);
    const network = ['2001:db8:a:b::1', '2001:db8:a:b:9:9:9:9'].map((address) => open(address, 2 * MIB));
    expect(network[0]!.upload.pool).toBe(network[1]!.upload.pool);
  });

  test('ends what waits longest without bytes when somebody waits for room, and only then', () => {
    const { clock, budget, open } = rig({ stallMs: 1000 });
    const idle = [3, 1, 2, 4].map((when) => {
      const one = open(`1.1.1.${when}`, 2 * MIB);
      clock.now = when;
      pour(one.upload, 1.9 * MIB);
      return one;
    });
    clock.now = 1500;
    budget.sweep();
    expect(idle.map(({ stopped }) => stopped)).toEqual([undefined, undefined, undefined, undefined]);
    const late = open('2.2.2.2', 2 * MIB);
    expect(pour(late.upload)).toBe(false);
    budget.sweep();
    expect(idle.map(({ stopped }) => stopped?.code)).toEqual([undefined, 'queue_full', undefined, undefined]);
    expect(late.resumed).toBe(1);
    expect(pour(late.upload)).toBe(true);
  });

  test('ends what comes too slowly, and does not count the time that it made somebody wait', () => {
    const { clock, budget, open } = rig({ minRate: 1000, graceMs: 1000, stallMs: 1e9 });
    const [slow, steady] = [open('1.1.1.1', 2 * MIB), open('2.2.2.2', 2 * MIB)];
    pour(slow.upload, 100);
    pour(steady.upload, 64 << 10);
    clock.now = 1099;
    budget.sweep();
    expect(slow.stopped).toBeUndefined();
    clock.now = 1101;
    budget.sweep();
    expect([slow.stopped?.status, slow.stopped?.code, steady.stopped]).toEqual([408, 'request_timeout', undefined]);

    const first = [1, 2, 3].map(() => open('3.3.3.3', 2 * MIB));
    for (const { upload } of first) pour(upload);
    const held = open('3.3.3.3', 2 * MIB);
    expect(held.upload.waiting).toBe(true);
    clock.now = 60_000;
    budget.sweep();
    expect(held.stopped).toBeUndefined();
    for (const { upload } of first) upload.close();
    expect(held.resumed).toBe(1);
    budget.sweep();
    expect(held.stopped).toBeUndefined();
    clock.now = 62_000;
    budget.sweep();
    expect(held.stopped?.code).toBe('request_timeout');
  });

  test('counts nothing of an upload that was given up', () => {
    const { clock, budget, open } = rig({ stallMs: 1000 });
    const idle = [1, 2, 3].map(() => open('1.1.1.1', 2 * MIB));
    for (const { upload } of idle) pour(upload, (15 / 8) * MIB);
    const late = open('1.1.1.1', 2 * MIB);
    expect(pour(late.upload)).toBe(false);
    clock.now = 1000;
    budget.sweep();
    const gone = idle.find(({ stopped }) => stopped)!;
    const { held } = budget;
    const ofPool = late.upload.pool.held;
    expect(gone.upload.take(64 << 10)).toBe(false);
    expect([budget.held, late.upload.pool.held]).toEqual([held, ofPool]);
    gone.upload.close();
    expect(pour(late.upload)).toBe(true);
    expect(late.upload.pool.held).toBe(budget.held);
  });

  test('lets all else have its turn once uploads were read for a while, and then reads on', async () => {
    const { clock, open } = rig();
    const uploads = [1, 2, 3].map(() => open('1.1.1.1', MIB));
    for (const [i, { upload }] of uploads.entries()) {
      clock.now = i;
      upload.take(1);
    }
    expect(uploads.map(({ paused, resumed }) => [paused, resumed])).toEqual(Array(3).fill([1, 0]));
    uploads[0]!.upload.take(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(uploads.map(({ paused, resumed }) => [paused, resumed])).toEqual(Array(3).fill([1, 1]));
    uploads[0]!.upload.take(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(uploads.map(({ paused, resumed }) => [paused, resumed])).toEqual(Array(3).fill([1, 1]));
  });

  test('has room for so many uploads; an idle one goes for the next, and one address has half', () => {
    const { clock, open } = rig({ maxUploads: 4, stallMs: 1000 });
    const two = [open('1.1.1.1', MIB), open('1.1.1.1', MIB)];
    expect(() => open('1.1.1.1', MIB)).toThrow('too many uploads');
    open('2.2.2.2', MIB);
    open('2.2.2.2', MIB);
    clock.now = 1000;
    open('3.3.3.3', MIB);
    expect(two[0]!.stopped?.code).toBe('queue_full');
  });

  test('reserves room for the samples of uploads in turn, and always for one', async () => {
    const { budget, open } = rig();
    const never = new AbortController();
    const whole = ['1.1.1.1', '2.2.2.2', '3.3.3.3'].map((address) => open(address, MIB).upload);
    for (const upload of whole) pour(upload);
    const reserved: number[] = [];
    const reserve = (index: number, bytes: number) => whole[index]!.reserve(bytes, never.signal).then(() => void reserved.push(index));
    await reserve(0, 20 * MIB);
    const second = reserve(1, MIB);
    expect(reserved).toEqual([0]);
    whole[0]!.settle(2 * MIB);
    await second;
    const gone = new AbortController();
    const third = whole[2]!.reserve(14 * MIB, gone.signal);
    gone.abort(new Error('gone'));
    await expect(third).rejects.toThrow('gone');
    for (const upload of whole) upload.close();
    expect(budget.held).toBe(0);
  });
});

const CLIP = writeWav(tone(440, 16000, 0.5), 16000);
const form = (file: Uint8Array): FormParts => [
  ['file', file],
  ['model', 'whisper-1'],
];

/** Sockets that declare 25 MiB and send only their headers and `bytes` bytes. */
function idleUploads(base: string, count: number, bytes = 0): Socket[] {
  const sockets = Array.from({ length: count }, () => connect(Number(new URL(base).port), '127.0.0.1'));
  for (const socket of sockets) {
    socket.on('error', () => {});
    onTestFinished(() => void socket.destroy());
    const head = `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: multipart/form-data; boundary=XX\r\n`;
    socket.write(`${head}content-length: ${25 * MIB}\r\n\r\n--XX\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n`);
    if (bytes > 0) socket.write(Buffer.alloc(bytes));
  }
  return sockets;
}

test('idle sockets that declare 25 MiB each stop nobody, and are told why they end', async () => {
  const { transcription } = await startListeners({}, { uploadLimits: { graceMs: 300 } });
  const sockets = idleUploads(transcription, 60);
  const answers = sockets.map(() => '');
  for (const [i, socket] of sockets.entries()) socket.on('data', (chunk) => (answers[i] += chunk.toString()));
  expect((await postForm(transcription + PATH, form(CLIP))).status).toBe(200);
  await until(() => answers.every((answer) => answer.includes('"request_timeout"')));
  for (const answer of answers) expect(answer).toMatch(/^HTTP\/1.1 408 /);
});

test('idle sockets that have filled the budget make room', async () => {
  const { transcription } = await startListeners({}, { uploadLimits: { stallMs: 200 } });
  idleUploads(transcription, 28, 24 * MIB);
  const large = writeWav(new Float32Array(6 * MIB), 16000);
  expect((await postForm(transcription + PATH, form(large))).status).toBe(200);
});

test('what still comes of uploads that were given up takes no room', async () => {
  const { transcription } = await startListeners({}, { uploadLimits: { maxBytes: 128 * MIB, stallMs: 1000 } });
  const sockets = idleUploads(transcription, 12, 12 * MIB);
  // The server reads on behind the answer that ends them, so that they get to read it.
  for (const socket of sockets) socket.once('data', () => socket.write(Buffer.alloc(12 * MIB)));
  const large = form(writeWav(new Float32Array(6 * MIB), 16000));
  const answers = await Promise.all([large, large, large].map((parts) => postForm(transcription + PATH, parts)));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
});

test.skipIf(process.platform !== 'linux')(
  '22 uploads of 25 MiB at once are all answered below the budget and 300 MiB (Linux only: resident memory is read from /proc)',
  async () => {
    const server = spawnAt(new URL('../support/serve-fake.ts', import.meta.url), []);
    onTestFinished(() => void server.child.kill('SIGKILL'));
    const { urls, child } = await whenReady(server);
    const file = writeWav(new Float32Array((25 * MIB) / 2 - 22), 16000);
    expect(file.length).toBe(25 * MIB);
    const url = `${urls['transcription']}/audio/transcriptions`;
    const body = formBody(form(file));
    const headers = { 'content-type': 'multipart/form-data; boundary=XX' };
    // From three addresses: one alone has a share of the budget.
    const sendFrom = (i: number) => send(url, { body, headers, from: `127.0.0.${1 + (i % 3)}` });
    const answers = await Promise.all(Array.from({ length: 22 }, (_, i) => sendFrom(i)));
    expect(answers.map(({ status, json }) => [status, json.text])).toEqual(Array(22).fill([200, 'Heard 819.20 seconds.']));
    const peakKib = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]);
    console.log(`the server's resident memory rose to ${Math.round(peakKib / 1024)} MiB`);
    expect(peakKib).toBeLessThan((512 + 300) * 1024);
  },
);
