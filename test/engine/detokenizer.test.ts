import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Detokenizer, StopMatcher } from '../../engine/text/detokenizer.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { createRng } from '../../engine/util/rng.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';

const FOLDER = join(fileURLToPath(new URL('../..', import.meta.url)), 'models', 'parley-chat');

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await Tokenizer.load(await openModelFolder(createNodePlatform(), FOLDER));
});

/** Every delta of a list of ids. */
function deltas(ids: readonly number[]): string[] {
  const detokenizer = new Detokenizer((some) => tokenizer.decode(some));
  return [...ids.map((id) => detokenizer.push(id)), detokenizer.flush()];
}

describe('Tokenizer', () => {
  test('knows special tokens as one token each and round-trips text', () => {
    expect(tokenizer.encode('<|im_start|>user\nHi<|im_end|>').slice(0, 1)).toEqual([1]);
    expect(tokenizer.encode('<|im_end|>')).toEqual([2]);
    expect(tokenizer.decode([1, 2])).toBe('');
    expect(tokenizer.decode([1, 2], { skipSpecialTokens: false })).toBe('<|im_start|><|im_end|>');
    for (const text of ['Hello, world!', '  two  spaces\n\n', 'naïve café 東京 🦊👩‍👩‍👧', '1234.5'])
      expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
  });
});

describe('Detokenizer', () => {
  test.each(['Plain words, then a full stop.', 'naïve café', '東京タワー', '🦊 and 👩‍👩‍👧 and 🦊', ' leading space', 'a\n\nb'])(
    '%j comes out whole and never in part characters',
    (text) => {
      const parts = deltas(tokenizer.encode(text));
      expect(parts.join('')).toBe(text);
      for (const part of parts) expect(part).not.toContain('\ufffd');
    },
  );

  test('an emoji of several byte tokens appears with its last byte', () => {
    const ids = tokenizer.encode('🦊');
    expect(ids.length).toBeGreaterThan(1);
    expect(deltas(ids)).toEqual([...new Array<string>(ids.length - 1).fill(''), '🦊', '']);
  });

  test('broken bytes are given out as U+FFFD, at the latest when the answer ends', () => {
    const first = tokenizer.encode('🦊')[0]!;
    expect(deltas([first]).join('')).toBe('\ufffd');
    expect(deltas([first, ...tokenizer.encode(' ok')]).join('')).toBe('\ufffd ok');
    expect(deltas(new Array<number>(20).fill(first)).join('')).toBe('\ufffd'.repeat(20));
  });

  test('random ids give the same text as decoding them at once', () => {
    const rng = createRng(9);
    for (let round = 0; round < 50; round++) {
      const ids = Array.from({ length: 40 }, () => rng.integer(4096));
      expect(deltas(ids).join('')).toBe(tokenizer.decode(ids));
    }
  });
});

describe('StopMatcher', () => {
  /** Text given out and the stop that ended it. */
  function run(stops: readonly string[], pieces: readonly string[]): { text: string; stop: string | undefined; sent: string[] } {
    const matcher = new StopMatcher(stops);
    const sent: string[] = [];
    for (const piece of pieces) {
      const { text, stop } = matcher.push(piece);
      sent.push(text);
      if (stop !== undefined) return { text: sent.join(''), stop, sent };
    }
    sent.push(matcher.flush());
    return { text: sent.join(''), stop: undefined, sent };
  }

  test('cuts before a stop string that spans deltas', () => {
    expect(run(['END'], ['one E', 'N', 'D two'])).toMatchObject({ text: 'one ', stop: 'END' });
  });
  test('holds back only what may become a stop string and gives it back', () => {
    expect(run(['END'], ['E', 'NO', 'EN']).sent).toEqual(['', 'ENO', '', 'EN']);
  });
  test('takes the earliest of several', () => {
    expect(run(['world', 'lo'], ['hello ', 'world'])).toMatchObject({ text: 'hel', stop: 'lo' });
  });
  test('repeated beginnings', () => {
    expect(run(['aab'], ['aa', 'a', 'b!'])).toMatchObject({ text: 'a', stop: 'aab' });
  });
  test('without stop strings everything passes', () => {
    expect(run([], ['a', 'b']).sent).toEqual(['a', 'b', '']);
  });
});
