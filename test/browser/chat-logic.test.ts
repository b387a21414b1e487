/** What the chat shows of settings and questions, as functions. Without a browser. */
import { describe, expect, test, vi } from 'vitest';
import { Pace } from '../../web/src/chat/pace.ts';
import { foldOf } from '../../web/src/chat/question.tsx';
import { changedSampling } from '../../web/src/chat/sampling.ts';
import { DEFAULT_SETTINGS } from '../../web/src/settings.ts';
import { directionOf } from '../../web/src/ui/direction.ts';

test('of the rarely used, what is not the default is said in words', () => {
  const { chat } = DEFAULT_SETTINGS;
  expect(changedSampling({ ...chat, temperature: 0, maxTokens: 16 })).toEqual([]);
  expect(changedSampling({ ...chat, topP: 0.9, topK: 40, topNSigma: 1.5, seed: '7', stop: '\nEND\n' })).toEqual([
    'Top-p 0.90',
    'Top-k 40',
    'Top-nσ 1.5',
    'seed 7',
    'stop at END',
  ]);
  expect(changedSampling({ ...chat, seed: 'x', stop: 'a\nb' })).toEqual(['2 stops']);
});

describe('a question', () => {
  test('is shown whole unless it is long', () => {
    expect(foldOf('Hi')).toBeUndefined();
    expect(foldOf('word '.repeat(400))).toBeUndefined();
    expect(foldOf('line\n'.repeat(29))).toBeUndefined();
  });

  test('is folded at the end of a line or of a word, and never in the middle of a character', () => {
    expect(foldOf('line\n'.repeat(31))).toBe('line\n'.repeat(8).length - 1);
    const words = 'word '.repeat(20_000);
    expect(words.slice(0, foldOf(words))).toMatch(/^(word )+word$/);
    const half = /\p{Surrogate}/u;
    const smiles = '🙂'.repeat(2000);
    expect(smiles.slice(0, foldOf(smiles))).not.toMatch(half);
    const odd = `x${smiles}`;
    expect(odd.slice(0, foldOf(odd))).not.toMatch(half);
  });
});

test('a field runs by its paragraphs, and a long text as its first letter', () => {
  expect(directionOf('שלום')).toBe('auto');
  const long = 'word '.repeat(5000);
  expect([directionOf(long), directionOf(`"1. שלום ${long}`), directionOf(`مرحبا ${long}`), directionOf('1'.repeat(30_000))]).toEqual([
    'ltr',
    'rtl',
    'rtl',
    'ltr',
  ]);
});

test('an answer is saved once a second while it grows, and once more when it stalls', () => {
  vi.useFakeTimers();
  try {
    let text = '';
    const saved: string[] = [];
    const pace = new Pace(1000, () => saved.push(text));
    for (const letter of 'abcd') {
      text += letter;
      pace.ask();
      vi.advanceTimersByTime(400);
    }
    // At 1000, when `c` was the last.
    expect(saved).toEqual(['abc']);
    vi.advanceTimersByTime(400);
    expect(saved).toEqual(['abc', 'abcd']);
    vi.advanceTimersByTime(5000);
    expect(saved).toEqual(['abc', 'abcd']);
    pace.ask();
    pace.ask();
    expect(saved.length).toBe(3);
    pace.stop();
    vi.advanceTimersByTime(5000);
    expect(saved.length).toBe(3);
  } finally {
    vi.useRealTimers();
  }
});
