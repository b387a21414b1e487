/** What the page measures and says of an answer, without a browser. */
import { describe, expect, test } from 'vitest';
import { AnswerMeter } from '../../web/src/chat/answer-meter.ts';
import { cutWords, emptyWords, endWords } from '../../web/src/chat/answer-words.ts';

describe('what is measured of an answer', () => {
  const measure = (times: readonly number[]): number => {
    let time = 1000;
    const meter = new AnswerMeter(() => time);
    for (const at of times) {
      time = 1000 + at;
      meter.take({ type: 'delta', tokens: 1 });
    }
    meter.take({ type: 'finish', reason: 'stop', completionTokens: times.length });
    return meter.stats().rate;
  };

  test('is the rate after the first token', () => {
    expect(measure(Array.from({ length: 101 }, (_, i) => 500 + 10 * i))).toBeCloseTo(100);
  });

  test('an answer that came in one burst has none: it would be that of the wire', () => {
    expect(measure(Array.from({ length: 10 }, (_, i) => 500 + 0.14 * i))).toBe(0);
    expect(measure([])).toBe(0);
  });
});

describe('how an answer ended', () => {
  const stats = { promptTokens: 500, cachedTokens: 0, completionTokens: 1512, firstTokenMs: 1, rate: 1 };

  test.each([
    ['done', 'stop', 'by itself'],
    ['done', 'length', 'at the length limit'],
    ['done', 'tool_calls', 'with a tool call'],
    ['done', 'content_filter', 'by a filter of the server'],
    // Earlier versions stored a reason here too.
    ['stopped', 'stop', 'by you'],
    ['stopped', undefined, 'by you'],
    ['failed', undefined, 'by an error'],
    ['done', undefined, undefined],
  ] as const)('%s, %s: %s', (status, reason, words) => {
    expect(endWords(status, reason ? { reason } : {})).toBe(words);
  });

  test('one that is cut off says by which limit', () => {
    expect(cutWords({ ...stats, reason: 'stop' }, 2012)).toBeUndefined();
    expect(cutWords(stats, 2012)).toBeUndefined();
    expect(cutWords({ ...stats, reason: 'length' }, 2012)).toMatch(/^Cut off here: the context is full/);
    const set = 'Cut off after 1,512 tokens, the longest answer that is set';
    expect([cutWords({ ...stats, reason: 'length' }, 2013), cutWords({ ...stats, reason: 'length' })]).toEqual([set, set]);
  });

  test('one without text says so, once', () => {
    expect(emptyWords({})).toBe('The model answered without any text.');
    expect(emptyWords({ reason: 'content_filter' })).toBe('No text: a filter of the server held it back.');
    // The words for one that is cut off say it.
    expect(emptyWords({ reason: 'length' })).toBeUndefined();
  });

  test('one that was broken off has no reason of its own', () => {
    const meter = new AnswerMeter();
    meter.take({ type: 'delta', tokens: 1 });
    expect(meter.stats()).not.toHaveProperty('reason');
  });
});
