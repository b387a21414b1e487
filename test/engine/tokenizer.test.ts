/** Token ids of small tokenizers of every shape, and the time that strangers' ones may take. What is expected is what PyPI `tokenizers` gives. No GPU. */
import { SplitPreTokenizer } from '@huggingface/tokenizers';
import { describe, expect, test } from 'vitest';
import { isBounded } from '../../engine/text/pattern-time.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { PRE_TOKENIZERS } from '../../engine/weights/gguf/pre-tokenizers.ts';
import type { ModelFolder } from '../../engine/weights/model-folder.ts';
import { marksSortedTogether } from '../support/normalizing.ts';

type Parts = Readonly<Record<string, unknown>>;

function load(parts: Parts): Promise<Tokenizer> {
  const json = { added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null, ...parts };
  const files: Readonly<Record<string, unknown>> = { 'tokenizer.json': json };
  const folder = { where: (name: string) => name, json: (name: string) => Promise.resolve(files[name] ?? {}) };
  return Tokenizer.load(folder as unknown as ModelFolder);
}

const byId = (pieces: readonly string[]): Parts => Object.fromEntries(pieces.map((piece, id) => [piece, id]));
// prettier-ignore
const PIECES = ['<unk>', 'a', 'b', 'c', 'ab', 'ba', 'aa', ' ', 'é', 'aé', '▁', '▁a', '▁▁', '$', 'A', 'B', 'Ġ', 'Ġa', 'Ġb', 'aĠ', 'x', ' a', 'ca'];
const MERGES = ['a b', 'a a', 'b a', 'a é', '▁ a', '▁ ▁', 'Ġ a', 'Ġ b', 'a Ġ', 'c a'].map((merge) => merge.split(' '));
const BPE = { type: 'BPE', unk_token: '<unk>', fuse_unk: false, byte_fallback: false, vocab: byId(PIECES), merges: MERGES };
const WORDS = { type: 'WordLevel', unk_token: '<unk>', vocab: byId(PIECES) };
const split = (pattern: Parts, behavior: string, invert = false): Parts => ({
  pre_tokenizer: { type: 'Split', pattern, behavior, invert },
});
const added = (content: string, settings: Parts): Parts => ({ id: 100, content, normalized: false, special: true, ...settings });

test.each<[name: string, parts: Parts, text: string, ids: readonly number[]]>([
  ['MergedWithPrevious', split({ String: 'b' }, 'MergedWithPrevious'), 'abbaba', [4, 2, 4, 1]],
  ['MergedWithNext', split({ String: 'b' }, 'MergedWithNext'), 'abbaba', [1, 2, 5, 5]],
  ['Contiguous', split({ Regex: '[ab]' }, 'Contiguous'), 'abcab', [4, 3, 4]],
  ['Removed, with a group', split({ Regex: '(b)|c' }, 'Removed'), 'abaca', [1, 1, 1]],
  ['Isolated, inverted', split({ Regex: 'a' }, 'Isolated', true), 'aba', [1, 2, 1]],
  ['Whitespace', { pre_tokenizer: { type: 'Whitespace' } }, 'aé b', [9, 2]],
  ['FixedLength', { pre_tokenizer: { type: 'FixedLength', length: 1 } }, '😀ab', [0, 1, 2]],
  ['Metaspace', { pre_tokenizer: { type: 'Metaspace', prepend_scheme: 'always', split: true } }, 'a  a', [11, 10, 11]],
  [
    "Metaspace at a text's beginning",
    { pre_tokenizer: { type: 'Metaspace', prepend_scheme: 'first', split: false }, normalizer: { type: 'NFC' }, added_tokens: [added('x', { id: 20, normalized: true })] }, // prettier-ignore
    'axa',
    [11, 20, 1],
  ],
  ['ByteLevel', { pre_tokenizer: { type: 'ByteLevel', add_prefix_space: true, use_regex: true } }, 'a b', [17, 18]],
  ['Replace', { normalizer: { type: 'Replace', pattern: { String: 'b' }, content: '$&' } }, 'ab', [1, 13, 0]],
  ['Lowercase', { normalizer: { type: 'Lowercase' }, model: { ...WORDS, vocab: byId(['<unk>', 'aσ', 'aς']) } }, 'AΣ', [1]],
  ['fuse_unk', { ...split({ String: 'y' }, 'Isolated'), model: { ...BPE, fuse_unk: true } }, 'zzyzz', [0, 0, 0]],
  ['BPE without an unknown token', { model: { ...BPE, unk_token: null } }, 'azb', [4]],
  [
    'continuing_subword_prefix',
    { model: { ...BPE, continuing_subword_prefix: '##', vocab: byId(['<unk>', 'a', '##b', 'ab', '##a']), merges: [['a', '##b']] } },
    'aba',
    [3, 4],
  ],
  ['WordLevel', { model: WORDS, pre_tokenizer: { type: 'WhitespaceSplit' } }, 'a zz ab', [1, 0, 4]],
  ['single_word', { added_tokens: [added('ba', { single_word: true })] }, 'aba ba', [4, 1, 7, 100]],
  ['lstrip and rstrip', { added_tokens: [added('x', { id: 20, lstrip: true, rstrip: true })] }, 'a x \u0085a', [1, 20, 1]],
  ['normalized', { added_tokens: [added('ab', { id: 4 }), added('aab', { id: 101, normalized: true })] }, 'aab', [1, 4]],
])('%s', async (_, parts, text, ids) => {
  expect((await load({ model: BPE, ...parts })).encode(text)).toEqual(ids);
});

test('a text that no token spells is refused where there is none for the unknown', async () => {
  const tokenizer = load({ model: { ...WORDS, unk_token: 'none' }, pre_tokenizer: { type: 'WhitespaceSplit' } });
  await expect(tokenizer.then((it) => it.encode('a zz'))).rejects.toThrow('no token of this model spells "zz"');
});

test('a decoder of texts without a mark in front keeps the first space', async () => {
  const decoder = { type: 'Metaspace', replacement: '▁', prepend_scheme: 'never' };
  expect((await load({ model: BPE, decoder })).decode([11, 11])).toBe(' a a');
});

test('a Unigram model takes texts of more tokens than a call has arguments', async () => {
  const model = { type: 'Unigram', unk_id: 0, vocab: [['<unk>', 0], ['a', -1]] }; // prettier-ignore
  expect((await load({ model })).encode('a'.repeat(200_000)).length).toBe(200_000);
});

test('marks without end on one letter, which take minutes to sort, are sorted a few at a time', async () => {
  const tokenizer = await load({ model: BPE, normalizer: { type: 'NFC' } });
  expect(marksSortedTogether(() => tokenizer.encode(`a${'\u0301\u0323'.repeat(1000)}`))).toBeLessThan(500);
  expect(tokenizer.encode('ae\u0301')).toEqual([9]);
});

describe('patterns of a stranger', () => {
  const compiled = (pattern: string): RegExp => {
    const split = new SplitPreTokenizer({ type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false });
    return (split as unknown as { readonly pattern: RegExp }).pattern;
  };
  const hard = [
    '(a+)+$', '(a|a)*b', '(a|aa)+$', '(?:a?){40}b', `${'a?'.repeat(30)}b`, `${'(?:a|a)'.repeat(30)}b`, 'a*a*b', String.raw`(\w+\s?)+$`, '(?=(a+)+b)',
    '(a*)*', String.raw`(a)\1`, '((a{1,8}){1,8}){1,8}b', '([a-z]+[0-9]?)*!', '(?:(?:a|b)|(?:a|c))*d',
  ]; // prettier-ignore

  test.each(hard)('%s is refused', async (pattern) => {
    const refused = (parts: Parts): Promise<void> => expect(load({ model: BPE, ...parts })).rejects.toThrow(/the pattern .* may take a time that nothing bounds/); // prettier-ignore
    await refused(split({ Regex: pattern }, 'Isolated'));
    await refused({ normalizer: { type: 'Sequence', normalizers: [{ type: 'Replace', pattern: { Regex: pattern }, content: '' }] } });
    await refused({ decoder: { type: 'Replace', pattern: { Regex: pattern }, content: '' } });
  });

  const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
  const REST = String.raw`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
  const published: Readonly<Record<string, string>> = {
    ...Object.fromEntries([...PRE_TOKENIZERS].flatMap(([name, { patterns }]) => patterns.map((pattern, i) => [`${name} ${i}`, pattern]))),
    'Llama 3': String.raw`${CONTRACTIONS}|[^\r\n\p{L}\p{N}]?\p{L}+|${REST}`,
    'Phi 4': String.raw`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`,
    o200k: String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+${CONTRACTIONS}?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*${CONTRACTIONS}?|${REST}`,
    'Kimi K2': String.raw`[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+${CONTRACTIONS}?|${REST}`,
    EXAONE: String.raw`[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|${REST}`,
    SuperBPE: String.raw`(?=(\d{3})+(?!\d))`,
    groups: String.raw`\d{1,3}(?=(?:\d{3})*\b)`,
  };

  test.each(Object.entries(published))('%s is taken', (_, pattern) => {
    expect(isBounded(compiled(pattern))).toBe(true);
  });
});

test('a token has no text where it is special and left out, and where nothing spells it', async () => {
  const tokenizer = await load({ model: WORDS, added_tokens: [added('<end>', {}), { ...added('<shown>', { special: false }), id: 101 }] });
  const silent = (options?: Parameters<Tokenizer['isSilent']>[1]): readonly boolean[] =>
    [1, 100, 101, 102].map((id) => tokenizer.isSilent(id, options));
  expect(silent()).toEqual([false, true, false, true]);
  expect(silent({ skipSpecialTokens: false })).toEqual([false, false, false, true]);
  expect(silent({ keep: new Set([100]) })).toEqual([false, false, false, true]);
});
