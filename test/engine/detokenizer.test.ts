import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatChoice } from '../../engine/tasks/chat-choice.ts';
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

  test('a character is whole behind any number of tokens without text', () => {
    const hidden = new Array<number>(20).fill(2);
    for (const text of ['🦊', '東', 'é']) {
      const parts = deltas([...tokenizer.encode('a'), ...hidden, ...tokenizer.encode(text), ...hidden, ...tokenizer.encode(text)]);
      expect(parts.filter((part) => part !== '')).toEqual(['a', text, text]);
    }
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

describe('a text that goes on from another', () => {
  const LLAMA = join(fileURLToPath(new URL('../fixtures/gguf/tiny/', import.meta.url)), 'llama-F16.gguf');

  test.each(['Once upon a', 'the 🦊', 'a', 'the '])('keeps the space between words behind %j', async (text) => {
    // SentencePiece leaves out the space that a text begins with.
    const pieces = await Tokenizer.load(await openModelFolder(createNodePlatform(), LLAMA));
    const [the] = pieces.encode('a the', { addSpecialTokens: false }).slice(-1);
    const decode = (ids: readonly number[]): string => pieces.decode(ids);
    const before = pieces.encode(text, { addSpecialTokens: true });
    expect(new Detokenizer(decode).push(the!)).toBe('the');
    expect(new Detokenizer(decode, before).push(the!)).toBe(' the');
    expect(text + new Detokenizer(decode, before).push(the!)).toBe(decode([...before, the!]));
  });

  test('begins with whole characters where the other ends within one', () => {
    const fox = tokenizer.encode('🦊');
    const detokenizer = new Detokenizer((ids) => tokenizer.decode(ids), fox.slice(0, 2));
    expect(
      tokenizer
        .encode(' ok')
        .map((id) => detokenizer.push(id))
        .join(''),
    ).toBe(' ok');
  });

  test('tokens that nothing spells have no text: checkpoints pad their vocabulary', async () => {
    const pieces = await Tokenizer.load(await openModelFolder(createNodePlatform(), LLAMA));
    const padding = pieces.vocabulary.tokens.length;
    const ids = pieces.encode('the boat', { addSpecialTokens: false });
    for (const skipSpecialTokens of [true, false]) {
      expect(pieces.decode([padding], { skipSpecialTokens })).toBe('');
      expect(pieces.decode([padding, ...ids, padding + 1], { skipSpecialTokens })).toBe('the boat');
    }
  });

  test('log-probabilities name a token with the space that it has', async () => {
    const pieces = await Tokenizer.load(await openModelFolder(createNodePlatform(), LLAMA));
    const [the] = pieces.encode('a the', { addSpecialTokens: false }).slice(-1);
    const choice = new ChatChoice(pieces, { index: 0, stop: [], skipSpecialTokens: true, parser: {}, matcher: undefined });
    const logprobs = { logprob: -1, top: [{ token: the!, logprob: -1 }] };
    const [delta] = choice.take(the!, { silent: false, last: true, logprobs }).deltas;
    const named = { token: ' the', bytes: [...new TextEncoder().encode(' the')], logprob: -1 };
    expect(delta).toMatchObject({ text: 'the', logprobs: [{ ...named, top: [named] }] });
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
