/** Tokenizers from GGUF files. */
import { describe, expect, test } from 'vitest';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import type { GgufValue } from '../../engine/weights/gguf/header.ts';
import { Metadata } from '../../engine/weights/gguf/metadata.ts';
import { PRE_TOKENIZERS } from '../../engine/weights/gguf/pre-tokenizers.ts';
import { readVocabulary } from '../../engine/weights/gguf/vocabulary.ts';
import type { Stored } from '../support/gguf-file.ts';
import { TOKENS, open, refusal, text, tiny, u32, withMetadata } from '../support/tiny-gguf.ts';

/** Of 140 characters, up to 128 of each: a megabyte that would become as many merges. */
const RUNS = Array.from({ length: 140 }, (_, c) =>
  Array.from({ length: 128 }, (_, i) => String.fromCharCode(256 + c).repeat(i + 1)),
).flat();

describe('tokenizers', () => {
  const tokenizerOf = async (more: Record<string, Stored | undefined> = {}): Promise<Tokenizer> =>
    Tokenizer.load(await open(withMetadata(more)), TOKENS.length);
  const spell = (tokenizer: Tokenizer, input: string, addSpecialTokens = false): string[] =>
    tokenizer.encode(input, { addSpecialTokens }).map((id) => tokenizer.vocabulary.tokens[id]!);

  test('BPE over bytes: pieces, special tokens, digits one by one', async () => {
    const tokenizer = await tokenizerOf();
    expect(spell(tokenizer, 'abc ab 12<|end|>ab<tool>')).toEqual(['abc', 'Ġab', 'Ġ', '1', '2', '<|end|>', 'ab', '<tool>']);
    expect(tokenizer.decode(tokenizer.encode('abc ab 12<|end|>'))).toBe('abc ab 12');
    expect(tokenizer.special('bos_token')).toBe('<|start|>');
    expect(tokenizer.tokenId('[PAD44]')).toBeUndefined();
  });

  test('a space in front is for SentencePiece: BPE over bytes has none, as in llama.cpp', async () => {
    const tokenizer = await tokenizerOf({ 'tokenizer.ggml.add_space_prefix': { type: 'bool', value: true } });
    expect(spell(tokenizer, 'abc ab 12<|end|>ab')).toEqual(['abc', 'Ġab', 'Ġ', '1', '2', '<|end|>', 'ab']);
  });

  test('BOS and EOS go around a text where the file says so', async () => {
    expect(spell(await tokenizerOf(), 'a', true)).toEqual(['a']);
    const both = {
      'tokenizer.ggml.add_bos_token': { type: 'bool', value: true },
      'tokenizer.ggml.add_eos_token': { type: 'bool', value: true },
    } as const;
    expect(spell(await tokenizerOf(both), 'a', true)).toEqual(['<|start|>', 'a', '<|end|>']);
    expect(spell(await tokenizerOf({ 'tokenizer.ggml.pre': text('llama-bpe') }), 'a', true)).toEqual(['<|start|>', 'a']);
  });

  test.each([
    ['and its template does not', '{{ messages }}', true, '{{ bos_token }}{{ messages }}'],
    ['and so does its template', '{{ bos_token }}{{ messages }}', true, '{{ bos_token }}{{ messages }}'],
    ['and its template spells it', '<|start|>{{ messages }}', true, '<|start|>{{ messages }}'],
    ['not at all', '{{ messages }}', false, '{{ messages }}'],
  ])('a prompt begins with BOS where the file says that texts do, %s', async (_, template, adds, expected) => {
    const tokenizer = await tokenizerOf({
      'tokenizer.ggml.add_bos_token': { type: 'bool', value: adds },
      'tokenizer.chat_template': text(template),
    });
    expect(tokenizer.config.chat_template).toBe(expected);
  });

  test('a base model stays without a template', async () => {
    const more = { 'tokenizer.ggml.pre': text('llama-bpe'), 'tokenizer.chat_template': undefined };
    expect((await tokenizerOf(more)).config.chat_template).toBeNull();
  });

  test('Kimi has Han apart from other letters, and others begin words with capitals', () => {
    // As Python's regex splits it by the published pattern.
    const pieces = "Hello世界abc XYZ's 12345 日本語のテキスト、".match(new RegExp(PRE_TOKENIZERS.get('kimi-k2')!.patterns[0]!, 'gu'));
    expect(pieces).toEqual(['Hello', '世界', 'abc', " XYZ's", ' ', '123', '45', ' ', '日本語', 'のテキスト', '、']);
  });

  test.each([...PRE_TOKENIZERS.keys()])('pre-tokenizer %s loses nothing', async (name) => {
    const tokenizer = await tokenizerOf({ 'tokenizer.ggml.pre': text(name) });
    const input = 'ab  abc\n\n 1234 abc\nab 5  ';
    expect(tokenizer.decode(tokenizer.encode(input))).toBe(input);
  });

  test.each([
    [
      'a pre-tokenizer',
      { 'tokenizer.ggml.pre': text('odd') },
      /its pre-tokenizer is "odd" \(tokenizer.ggml.pre\); known are default, gpt-2/,
    ],
    ['another tokenizer', { 'tokenizer.ggml.model': text('bert') }, /its tokenizer is "bert"; tokenizers gpt2, llama, gemma4 are read/],
    ['none', { 'tokenizer.ggml.tokens': undefined }, /tokenizer.ggml.tokens is missing/],
    ['merges of one part', { 'tokenizer.ggml.merges': { type: 'strings', value: ['ab'] } }, /merges has "ab", expected two parts/],
    [
      'kinds of other tokens',
      { 'tokenizer.ggml.token_type': { type: 'i32s', value: [1] } },
      /token_type has 1 values, but there are 45 tokens/,
    ],
    ['an end beyond the tokens', { 'tokenizer.ggml.eos_token_id': u32(45) }, /eos_token_id is 45, expected a token below 45/],
    [
      'a token without end',
      { 'tokenizer.ggml.tokens': { type: 'strings', value: [...TOKENS.slice(1), 'x'.repeat(5000)] } },
      /token 44 .* has 5000 characters/,
    ],
    [
      'pieces that can be cut everywhere',
      {
        'tokenizer.ggml.model': text('llama'),
        'tokenizer.ggml.tokens': { type: 'strings', value: RUNS },
        'tokenizer.ggml.token_type': { type: 'i32s', value: RUNS.map(() => 1) },
        'tokenizer.ggml.scores': { type: 'f32s', value: RUNS.map(() => 0) },
      },
      /its tokens can be merged in more than 1048576 ways; no more are read/,
    ],
  ] as const)('%s is refused', async (_, more, message) => {
    expect(await refusal(withMetadata(more), (model) => model.json('tokenizer.json'))).toMatch(message);
  });

  test('a token that is there over and over is read in a moment', () => {
    // To look for its kin again for each takes many minutes, more than the test's own limit.
    const tokens = Array.from({ length: 600_000 }, () => '<|end|>');
    const kinds = tokens.map(() => 3);
    const keys: [string, GgufValue][] = [['tokenizer.ggml.tokens', tokens], ['tokenizer.ggml.token_type', kinds]]; // prettier-ignore
    const metadata = new Metadata('x.gguf', new Map(keys));
    expect(readVocabulary(metadata).ends).toHaveLength(tokens.length);
  });

  test('pieces with scores: the best pair first, bytes for what has no piece, a space in front', async () => {
    const pieces = ['<unk>', '<s>', '</s>', '<0xC3>', '<0xA9>', '▁', 'a', 'b', 'c', 'ab', 'bc', '▁a', '▁ab', 'abc'];
    const scores = [0, 0, 0, 0, 0, -10, -11, -12, -13, -3, -1, -4, -5, -9];
    const metadata: Record<string, Stored> = {
      'tokenizer.ggml.model': text('llama'),
      'tokenizer.ggml.tokens': { type: 'strings', value: pieces },
      'tokenizer.ggml.scores': { type: 'f32s', value: scores },
      'tokenizer.ggml.token_type': { type: 'i32s', value: [2, 3, 3, 6, 6, ...pieces.slice(5).map(() => 1)] },
      'tokenizer.ggml.bos_token_id': u32(1),
      'tokenizer.ggml.eos_token_id': u32(2),
      'tokenizer.ggml.unknown_token_id': u32(0),
    };
    const tokenizer = await tokenizerOf(metadata);
    // "bc" is worth more than "ab", so "abc" is not reached by way of it; "a" and "bc" make it afterwards.
    expect(spell(tokenizer, 'ab abc é', true)).toEqual(['<s>', '▁ab', '▁a', 'bc', '▁', '<0xC3>', '<0xA9>']);
    expect(tokenizer.decode(tokenizer.encode('ab abc é'))).toBe('ab abc é');
    const plain = await tokenizerOf({ ...metadata, 'tokenizer.ggml.add_space_prefix': { type: 'bool', value: false } });
    expect(spell(plain, 'ab')).toEqual(['ab']);
  });

  test("Phi-3's tokens take the white space behind them, which files do not say", async () => {
    const pieces = ['<unk>', '<s>', '<|endoftext|>', '<|user|>', '<|end|>', '<0x0A>', '▁', 'a', 'b', '▁a', 'ab', '▁ab'];
    const metadata: Record<string, Stored> = {
      'tokenizer.ggml.model': text('llama'),
      'tokenizer.ggml.tokens': { type: 'strings', value: pieces },
      'tokenizer.ggml.scores': { type: 'f32s', value: pieces.map((_, id) => -id) },
      'tokenizer.ggml.token_type': { type: 'i32s', value: [2, 3, 3, 4, 3, 6, ...pieces.slice(6).map(() => 1)] },
      'tokenizer.ggml.bos_token_id': u32(1),
      'tokenizer.ggml.eos_token_id': u32(2),
      'tokenizer.ggml.unknown_token_id': u32(0),
    };
    const prompt = '<|user|>\nab<|end|>\n<s>\nab';
    expect(spell(await tokenizerOf(metadata), prompt).slice(0, 5)).toEqual(['<|user|>', '▁', '<0x0A>', 'ab', '<|end|>']);
    const keys = Object.entries(tiny().metadata).filter(([key]) => key.startsWith('llama.'));
    const phi3 = Object.fromEntries(keys.map(([key, value]) => [key.replace('llama.', 'phi3.'), value]));
    const tokenizer = await tokenizerOf({ ...phi3, ...metadata, 'general.architecture': text('phi3') });
    expect(spell(tokenizer, prompt)).toEqual(['<|user|>', '▁ab', '<|end|>', '<s>', '▁', '<0x0A>', 'ab']);
  });

  test('pieces with merges: in the order of the file, across spaces, bytes for what has no piece', async () => {
    const pieces = ['<pad>', '<bos>', '<turn|>', '<unk>', '<0xC3>', '<0xA9>', '▁', 'a', 'b', 'c', 'ab', '▁c', 'ab▁c', '\n', '\n\n'];
    const metadata: Record<string, Stored> = {
      'tokenizer.ggml.model': text('gemma4'),
      'tokenizer.ggml.tokens': { type: 'strings', value: pieces },
      'tokenizer.ggml.scores': { type: 'f32s', value: pieces.map(() => 0) },
      'tokenizer.ggml.merges': { type: 'strings', value: ['a b', '▁ c', 'ab ▁c', '\n \n'] },
      'tokenizer.ggml.token_type': { type: 'i32s', value: [3, 3, 3, 2, 6, 6, ...pieces.slice(6).map(() => 1)] },
      'tokenizer.ggml.bos_token_id': u32(1),
      'tokenizer.ggml.eos_token_id': u32(2),
      'tokenizer.ggml.unknown_token_id': u32(3),
      'tokenizer.ggml.add_space_prefix': { type: 'bool', value: false },
    };
    const tokenizer = await tokenizerOf(metadata);
    expect(spell(tokenizer, 'ab c\n\né ba<turn|>', true)).toEqual(['<bos>', 'ab▁c', '\n\n', '<0xC3>', '<0xA9>', '▁', 'b', 'a', '<turn|>']);
    expect(tokenizer.decode(tokenizer.encode('ab c\n\né'))).toBe('ab c\n\né');
  });
});
