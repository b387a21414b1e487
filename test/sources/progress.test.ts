/** The line about a pull: on a terminal and elsewhere, and what it says of speed and time. */
import { expect, test } from 'vitest';
import { Meter, describeProgress, formatBytes, formatSeconds } from '../../sources/index.ts';
import { reportPull } from '../../sources/node/index.ts';
import { addRange, missingPieces, rangeBytes, readRanges } from '../../sources/ranges.ts';
import type { Range } from '../../sources/ranges.ts';

const MB = 1_000_000;

function stream(
  isTTY: boolean,
  columns = 80,
): { text: string; write(text: string): void; readonly isTTY: boolean; readonly columns: number } {
  return {
    text: '',
    write(text) {
      this.text += text;
    },
    isTTY,
    columns,
  };
}

test('speed and time left are those of the last ten seconds, and not of what was here before', () => {
  const meter = new Meter();
  meter.note(500 * MB, 0);
  expect([meter.speed, meter.secondsLeft(1000 * MB)]).toEqual([undefined, undefined]);
  for (let second = 1; second <= 30; second++) meter.note(500 * MB + second * (second <= 15 ? 1 : 2) * MB, second * 1000);
  expect(meter.speed).toBe(2 * MB);
  expect(meter.secondsLeft(600 * MB)).toBe(20);
  meter.note(0, 31_000);
  expect(meter.speed).toBeUndefined();
});

test('a terminal has one line that is written over, as wide as it is; elsewhere there is a line now and then', () => {
  let now = 0;
  const what = `pypi:${'a-long-name-'.repeat(10)}@1/m.gguf`;
  const play = (out: ReturnType<typeof stream>): string => {
    now = 0;
    const report = reportPull(out, () => now);
    for (let i = 0; i <= 1000; i++, now += 10) report.onProgress({ what, step: 'fetching', done: i * MB, total: 1000 * MB });
    report.line('a note');
    report.end();
    return out.text;
  };
  const terminal = play(stream(true, 60));
  const frames = terminal.split('\r\x1b[K').slice(1);
  expect(frames.length).toBeGreaterThan(50);
  expect(frames.every((frame) => frame.split('\n')[0]!.length <= 59)).toBe(true);
  expect(frames.at(-2)).toMatch(/^pypi:a.*….*m\.gguf: 100 % of 1\.0 GB, 100 MB\/s, 0 s left$/);
  expect(frames.at(-1)).toBe('a note\n');
  expect(terminal.split('\n')).toHaveLength(2);
  // A terminal that knows no size says 0.
  expect(play(stream(true, 0))).toMatch(/: 100 % of 1\.0 GB, 100 MB\/s, 0 s left\r/);
  const plain = play(stream(false)).split('\n');
  expect(plain.length).toBeLessThan(16);
  expect(plain[0]).toBe(`${what}: 0 % of 1.0 GB`);
  expect(plain.at(-3)).toBe(`${what}: 100 % of 1.0 GB, 100 MB/s, 0 s left`);
});

test('a wait for another process, an unknown size, and the check say what they are', () => {
  const meter = new Meter();
  expect(describeProgress({ what: 'm', step: 'fetching', done: 1500, process: 7 }, meter)).toBe('m: 1.5 kB, fetched by process 7');
  expect(describeProgress({ what: 'm', step: 'checking', done: 999, total: 1000 }, meter)).toBe('m: checking, 99 % of 1.0 kB');
  expect(describeProgress({ what: 'a/model', step: 'checking', done: 999, total: 1000 }, meter, 10)).toHaveLength(10);
});

test('bytes and seconds', () => {
  expect([0, 999, 1000, 99_949, 99_950, 1e6, 1.5e9, 2e12].map(formatBytes)).toEqual([
    '0 bytes',
    '999 bytes',
    '1.0 kB',
    '99.9 kB',
    '100 kB',
    '1.0 MB',
    '1.5 GB',
    '2.0 TB',
  ]);
  expect([0.4, 59, 75, 3700].map(formatSeconds)).toEqual(['0 s', '59 s', '1 min 15 s', '1 h 1 min']);
});

test('runs of bytes are joined, counted, and what is between them is found', () => {
  let ranges: Range[] = [];
  for (const range of [
    [10, 20],
    [30, 40],
    [20, 25],
    [0, 5],
    [25, 30],
    [7, 7],
  ] as const)
    ranges = addRange(ranges, range);
  expect([ranges, rangeBytes(ranges)]).toEqual([[[0, 5], [10, 40]], 35]); // prettier-ignore
  expect(missingPieces(ranges, 100, 25)).toEqual([[5, 10], [40, 65], [65, 90], [90, 100]]); // prettier-ignore
  expect(missingPieces([], 0, 25)).toEqual([]);
  expect(readRanges(ranges, 40)).toEqual(ranges);
  for (const wrong of [undefined, [[0, 0]], [[5, 3]], [[0, 5], [5, 9]], [[0, 50]], [[0.5, 2]], ['0-5']]) expect(readRanges(wrong, 40)).toBeUndefined(); // prettier-ignore
});
