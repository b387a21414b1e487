/** What a file that breaks its decoder does to others: nothing. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { writeWav } from '../../engine/audio/wav.ts';
import { CodecPool } from '../../server/audio/pool.ts';
import { Blocks } from '../../server/body/blocks.ts';
import { tone } from '../support/wav-file.ts';

let pool: CodecPool;
afterEach(() => pool.close());

const upload = (bytes: Uint8Array): Blocks => {
  const blocks = new Blocks();
  blocks.push(bytes);
  return blocks;
};
const good = (): Blocks => upload(writeWav(tone(440, 16000, 0.5), 16000));

describe('a file that breaks its decoder', () => {
  test.each([
    ['DIES', 'kills the worker'],
    ['HANG', 'holds the worker'],
  ])('%s: fails alone where it %s, and those that wait behind it are decoded', async (word) => {
    // One worker, so that all of them wait for the same; its start counts, too.
    pool = new CodecPool(1, { worker: new URL('../support/fragile-codec.ts', import.meta.url), deadlineMs: 10_000 });
    const before = pool.decode(good());
    const broken = pool.decode(upload(Buffer.from(word.padEnd(64))));
    const behind = [pool.decode(good()), pool.decode(good())];
    await expect(broken).rejects.toMatchObject({ status: 500, code: 'internal_error', headers: { 'x-should-retry': 'false' } });
    for (const decoded of [await before, ...(await Promise.all(behind)), await pool.decode(good())]) {
      expect(decoded.samples.length).toBe(8000);
      await decoded.discard();
    }
  });

  test('leaves speech that is being encoded alone', async () => {
    pool = new CodecPool(1, { worker: new URL('../support/fragile-codec.ts', import.meta.url) });
    const encoder = await pool.open('mp3', { from: 24000, to: 24000 });
    // Encoders have threads of their own, so a decoding that fails is not theirs.
    await expect(pool.decode(upload(Buffer.from('DIES')))).rejects.toMatchObject({ status: 500 });
    expect((await encoder.push(tone(440, 24000, 1))).length + (await encoder.finish()).bytes.length).toBeGreaterThan(1000);
  });
});

test('speech whose encoder was in a worker that died fails at once, and holds up no other', async () => {
  pool = new CodecPool(1, { worker: new URL('../support/fragile-codec.ts', import.meta.url) });
  const rates = { from: 24000, to: 24000 };
  const [deadly, idle] = [await pool.open('pcm', rates), await pool.open('pcm', rates)];
  await expect(deadly.push(new Float32Array([NaN]))).rejects.toMatchObject({ status: 500 });
  const other = await pool.open('pcm', rates);
  const failed = expect(idle.push(tone(440, 24000, 0.1))).rejects.toMatchObject({ status: 500, code: 'internal_error' });
  expect((await other.push(tone(440, 24000, 0.1))).length + (await other.finish()).bytes.length).toBe(4800);
  await failed;
});

test('what came when no thread could be started fails alone', async () => {
  let fails = 1;
  class Failing extends URL {
    override get href(): string {
      if (fails-- > 0) throw new Error('no thread is left');
      return super.href;
    }
  }
  pool = new CodecPool(1, { worker: new Failing('../../server/audio/worker.ts', import.meta.url) });
  await expect(pool.decode(good())).rejects.toMatchObject({ status: 500, code: 'internal_error' });
  const decoded = await pool.decode(good());
  expect(decoded.samples.length).toBe(8000);
  await decoded.discard();
});

test('a pool that was closed starts no worker any more, which would keep the process', async () => {
  pool = new CodecPool(1);
  const rates = { from: 24000, to: 24000 };
  const encoder = await pool.open('pcm', rates);
  await pool.close();
  const ports = (): number => process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length;
  const before = ports();
  await expect(encoder.push(tone(440, 24000, 0.1))).rejects.toMatchObject({ status: 503, code: 'shutting_down' });
  encoder.discard();
  await expect(pool.open('pcm', rates)).rejects.toMatchObject({ status: 503, code: 'shutting_down' });
  await expect(pool.decode(good())).rejects.toMatchObject({ status: 503, code: 'shutting_down' });
  expect(ports()).toBe(before);
});

test('without a folder for temporary files, uploads are refused and the log says so once, until there is one again', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'parley-pool-'));
  const folder = join(parent, 'missing');
  vi.stubEnv('TMPDIR', folder);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(parent, { recursive: true });
  });
  const lines: object[] = [];
  const log = { error: (fields: object) => void lines.push(fields), info: (fields: object) => void lines.push(fields) };
  pool = new CodecPool(1, { log });
  const refused = (problem: string) => expect(pool.decode(good())).rejects.toMatchObject({ status: 503, code: 'out_of_memory', message: expect.stringContaining(problem) }); // prettier-ignore
  await refused('is missing');
  await refused('is missing');
  writeFileSync(folder, '');
  await refused('is not a folder');
  expect(lines).toEqual([{ folder, problem: expect.stringContaining('is missing') }]);
  rmSync(folder);
  mkdirSync(folder);
  await (await pool.decode(good())).discard();
  await (await pool.decode(good())).discard();
  expect(lines.slice(1)).toEqual([{ folder }]);
});

describe('a file that nobody waits for any more', () => {
  test.each([1, 2])('holds up nobody: of %i that are given up, none is decoded to its end', async (count) => {
    // The worker would have two minutes for each.
    pool = new CodecPool(1, { worker: new URL('../support/fragile-codec.ts', import.meta.url) });
    await (await pool.decode(good())).discard();
    const gone = new AbortController();
    const given = Array.from({ length: count }, () => pool.decode(upload(Buffer.from('HANG'.padEnd(64))), gone.signal));
    const behind = pool.decode(good(), new AbortController().signal);
    gone.abort();
    await Promise.all(given.map((one) => expect(one).rejects.toMatchObject({ code: 'aborted' })));
    expect((await behind).samples.length).toBe(8000);
    await (await behind).discard();
    await expect(pool.decode(good(), gone.signal)).rejects.toMatchObject({ code: 'aborted' });
  });

  test('ends no worker that is still loading, since Node would leave files open that it is reading', async () => {
    let started = 0;
    const note = (): void => void started++;
    process.on('worker', note);
    onTestFinished(() => void process.off('worker', note));
    pool = new CodecPool(1);
    for (let i = 0; i < 3; i++) {
      const gone = new AbortController();
      const given = pool.decode(good(), gone.signal);
      gone.abort();
      await expect(given).rejects.toMatchObject({ code: 'aborted' });
    }
    const { samples, discard } = await pool.decode(good());
    expect(samples.length).toBe(8000);
    await discard();
    expect(started).toBe(1);
  });
});
