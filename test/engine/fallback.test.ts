import { describe, expect, test } from 'vitest';
import { MAX_STEP_ROWS } from '../../engine/runner/whisper-step.ts';
import { judge } from '../../engine/tasks/fallback.ts';
import type { Attempt } from '../../engine/tasks/fallback.ts';
import type { Window } from '../../engine/tasks/transcription-job.ts';
import { WindowSteps } from '../../engine/tasks/window-steps.ts';
import { compressionRatio } from '../../engine/util/compression.ts';

const thresholds = { compressionRatio: 2.4, logprob: -1, noSpeech: 0.6 };
const attempt = (avgLogprob: number, ratio: number, temperature = 0): Attempt =>
  ({ temperature, tokens: [temperature * 10], logprobs: [avgLogprob], avgLogprob, compressionRatio: ratio }); // prettier-ignore

test('a text is compressed to as many bytes as by the zlib of Python, wherever it is', () => {
  const unread = `${'\ufffd'.repeat(4)}x${'\ufffd'.repeat(16)}s]${'\ufffd'.repeat(7)}Qp\ufffd\ufffd\u0637\ufffdppQQpp\ufffdQ\ufffd`;
  // By `len(zlib.compress(text.encode()))`. Node's own zlib needs 31 bytes for the second text, and 44 for the third.
  const rows: readonly (readonly [string, number])[] = [
    ['He was the first to say that the porch was too small for so many chairs.', 68],
    ['no no yes no yes yes no no okay no yes no no yes', 29],
    [unread, 41],
    ['1.5m de '.repeat(56), 21],
    ['ありがとうございました。'.repeat(9), 50],
    ['', 8],
  ];
  for (const [text, bytes] of rows) expect(compressionRatio(text)).toBe(Buffer.byteLength(text) / bytes);
});

describe('what is heard', () => {
  const rules = { thresholds, climbs: true };

  test('stands where it is likely and does not repeat itself, whatever the probability of silence', () => {
    for (const noSpeech of [0, 0.99])
      expect(judge([attempt(-0.9, 2.3)], noSpeech, rules)).toEqual({ kind: 'stands', attempt: attempt(-0.9, 2.3) });
  });

  test('is silence where it is rejected and no speech was heard: unlikely, or a confident loop', () => {
    expect(judge([attempt(-1.1, 1)], 0.7, rules)).toEqual({ kind: 'silence' });
    expect(judge([attempt(-0.13, 40)], 0.987, rules)).toEqual({ kind: 'silence' });
    expect(judge([attempt(-1.1, 1)], 0.7, { thresholds, climbs: false })).toEqual({ kind: 'silence' });
  });

  test('is decoded again, warmer each time, and not where a temperature was asked for', () => {
    const tries: Attempt[] = [];
    for (const next of [0.2, 0.4, 0.6, 0.8, 1]) {
      tries.push(tries.length % 2 === 0 ? attempt(-1.5, 1) : attempt(-0.2, 9));
      expect(judge(tries, 0.1, rules)).toEqual({ kind: 'again', temperature: next });
    }
    expect(judge([...tries, attempt(-0.5, 1, 1)], 0.1, rules)).toEqual({ kind: 'stands', attempt: attempt(-0.5, 1, 1) });
    expect(judge([attempt(-1.5, 1, 0.7)], 0.1, { thresholds, climbs: false })).toEqual({ kind: 'stands', attempt: attempt(-1.5, 1, 0.7) });
  });

  test('is the likeliest that does not repeat itself when all six are rejected, else the likeliest', () => {
    const loop = attempt(-0.1, 9);
    const tries = [loop, attempt(-3, 1, 0.2), attempt(-2, 1, 0.4), attempt(-4, 1, 0.6), loop, attempt(-5, 1, 1)];
    expect(judge(tries, 0.1, rules)).toEqual({ kind: 'stands', attempt: tries[2] });
    const loops = [-0.3, -0.2, -0.4, -0.5, -0.6, -0.7].map((logprob, i) => attempt(logprob, 9, i / 5));
    expect(judge(loops, 0.1, rules)).toEqual({ kind: 'stands', attempt: loops[1] });
  });

  test('is a repetition that ended rather than words at random, but no loop and not instead of a guess', () => {
    // Published tiny.en and a song of one verse, sung four times.
    const chorus = { ...attempt(-0.25, 4.28), ended: true };
    const again = [0.2, 0.4, 0.6, 0.8].map((temperature) => ({ ...attempt(-0.4, 4.2, temperature), ended: true }));
    const random = { ...attempt(-3.16, 1, 1), ended: true };
    expect(judge([chorus, ...again, random], 0.1, rules)).toEqual({ kind: 'stands', attempt: chorus });
    const guess = { ...attempt(-1.21, 2.16, 1), ended: true };
    expect(judge([chorus, ...again, guess], 0.1, rules)).toEqual({ kind: 'stands', attempt: guess });
    const loops = [chorus, ...again].map((one) => ({ ...one, ended: false }));
    expect(judge([...loops, random], 0.1, rules)).toEqual({ kind: 'stands', attempt: random });
    const unsure = [chorus, ...again].map((one) => ({ ...one, avgLogprob: -1.5 }));
    expect(judge([...unsure, random], 0.1, rules)).toEqual({ kind: 'stands', attempt: random });
  });
});

test('a window that begins again takes its rows beside those of others, and nothing of its rejected attempt', () => {
  const tokens = { start: 1, eos: 0, noSpeech: undefined, timestampBegin: 100, languages: new Map() };
  const config = { targetPositions: 448, vocabulary: 100 };
  const steps = new WindowSteps({ beams: 1, model: { tokens, config } as never });
  const window = (slot: number): Window =>
    ({ job: { request: {} }, seed: 3, slot, prompt: [1, 2], fed: 2, planned: 4, temperature: 0, tokens: [7, 8], logprobs: [0, 0], logprob: 0, attempts: [], done: false }) as unknown as Window; // prettier-ignore
  const [rejected, other] = [window(0), window(1)];
  const before = steps.plan([rejected, other]);
  expect(before.rows.map(({ slot, position }) => [slot, position])).toEqual([[0, 5], [1, 5]]); // prettier-ignore
  rejected.attempts.push(attempt(-2, 1));
  Object.assign(rejected, { temperature: 0.2, fed: 0, planned: 0, tokens: [], logprobs: [] });
  const after = steps.plan([rejected, other]);
  expect(after.rows.map(({ slot, position }) => [slot, position])).toEqual([[0, 0], [0, 1], [1, 6]]); // prettier-ignore
  const [again, ongoing] = after.rows.flatMap(({ sample }) => (sample ? [sample] : []));
  expect([again!.temperature, ongoing!.temperature]).toEqual([0.2, 0]);
  expect(again!.seed).not.toBe(ongoing!.seed);
  for (const row of before.sampled) steps.take(row, [{ token: 9, logprob: -1 }]);
  expect([rejected.tokens, other.tokens]).toEqual([[], [7, 8, 9]]);
});

test('a window that looks for its language waits for room in a step that prompts of others fill', () => {
  const tokens = { start: 1, eos: 0, noSpeech: undefined, timestampBegin: 1000, languages: new Map([['en', 3]]) };
  const config = { targetPositions: 448, vocabulary: 1000 };
  const steps = new WindowSteps({ beams: 1, model: { tokens, config } as never });
  const window = (slot: number, prompt: number[]): Window =>
    ({ job: { request: {} }, seed: slot, slot, prompt, fed: 0, planned: 0, temperature: 0, tokens: [], attempts: [], done: false }) as unknown as Window; // prettier-ignore
  const prompted = window(
    0,
    Array.from({ length: MAX_STEP_ROWS + 8 }, () => 7),
  );
  const detecting = window(1, []);
  const kinds = () => steps.plan([prompted, detecting]).sampled.map(({ kind }) => kind);
  expect(steps.plan([prompted, detecting]).rows).toHaveLength(MAX_STEP_ROWS);
  expect(detecting.fed).toBe(0);
  expect(kinds()).toEqual(['token', 'language']);
  expect(kinds()).toEqual(['token']);
});
