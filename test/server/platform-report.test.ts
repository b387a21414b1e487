/** A report of the Device page becomes a row of docs/platforms.json. */
import { expect, test } from 'vitest';
import { rowOfReport, withRow, withSpeeds } from '../tools/platform-report.ts';
import type { PlatformRow } from '../tools/platform-report.ts';

const report = (agent: string, verdict: string, device = 'not told'): string =>
  `## Parley device report\n\n${verdict}\n\n- date: 2026-11-23\n- models loaded: chat\n- last answer: 48.2 tokens/s\n\n- vendor: apple\n- architecture: metal-3\n- device: ${device}\n- kind: hardware, as far as the browser tells\n\n### Page\n- browser: ${agent}\n`;
const SAFARI = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Safari/605.1.15';
const EDGE =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/153.0.0.0 Safari/537.36 Edg/153.0.0.0';
const ANDROID = 'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/153.0.0.0 Mobile Safari/537.36';

test('browser, system, adapter, cases, models and speed come from the report', () => {
  expect(rowOfReport(report(SAFARI, 'All 690 kernel cases agree with their CPU reference.'))).toEqual({
    where: 'Safari 26.1, macOS', adapter: 'apple metal-3', date: '2026-11-23', cases: '690 of 690', models: 'chat', speed: '48.2 tokens/s',
  }); // prettier-ignore
  expect(rowOfReport(report(EDGE, '2 of 690 kernel cases differ from their CPU reference on this adapter.', 'RTX'))).toMatchObject({
    where: 'Edge 153.0.0.0, Windows',
    adapter: 'RTX',
    cases: '688 of 690',
  });
  const untested = rowOfReport(report(ANDROID, 'The kernels have not been tested on this adapter.'));
  expect(untested).toMatchObject({ where: 'Chrome 153.0.0.0, Android' });
  expect(untested.cases).toBeUndefined();
  expect(() => rowOfReport('hello')).toThrow(/no report of the Device page/);
});

test('a row takes the place of an older one of the same browser, system and adapter, or of one that says that nobody has tried', () => {
  const rows: readonly PlatformRow[] = [{ where: 'Safari, macOS', adapter: '' }, { where: 'Firefox 152, Linux', adapter: 'a', date: '2026-10-01' }]; // prettier-ignore
  const safari = { where: 'Safari 26.1, macOS', adapter: 'm3', date: '2026-11-23' };
  const firefox = { where: 'Firefox 153.7, Linux', adapter: 'a', date: '2026-11-23' };
  expect(withRow(rows, safari)).toEqual([safari, rows[1]]);
  expect(withRow(rows, firefox)).toEqual([rows[0], firefox]);
  expect(withRow(rows, { ...firefox, adapter: 'b' })).toHaveLength(3);
});

test('speeds go to the rows that were run, with the load of a machine that did other work', () => {
  const rows: readonly PlatformRow[] = [
    { where: 'Firefox 153.7, Linux', adapter: 'a', date: '2026-11-23' },
    { where: 'Firefox, Windows', adapter: '' },
    { where: 'Deno 2.9.5, Linux', adapter: 'a', date: '2026-11-23', speed: '1 tokens/s' },
  ];
  const speeds = new Map([['Firefox', 8]]);
  expect(withSpeeds(rows, speeds, 0.3)).toEqual([{ ...rows[0], speed: '125 tokens/s' }, rows[1], rows[2]]);
  expect(withSpeeds(rows, speeds, 7.6)[0]!.speed).toBe('125 tokens/s, at load 8');
});
