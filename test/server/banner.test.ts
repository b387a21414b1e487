/** What the operator is told at the start about settings that the machine or the model does not meet. */
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { EngineInfo, MemoryUse, ModelInfo } from '../../engine/api.ts';
import { describeStart } from '../../server/banner.ts';
import { parseServerConfig } from '../../server/settings/config.ts';
import { FAKE_INFO } from '../support/fake-engine.ts';

const REFERENCE = fileURLToPath(new URL('../../deploy/reference.json', import.meta.url));
const MEMORY: MemoryUse = {
  deviceBytes: 2 ** 30,
  source: 'test',
  fraction: 0.4,
  otherBytes: 0,
  weightBytes: 4000,
  activationBytes: 0,
  kvBytes: 0,
  kvPages: 64,
  pageSize: 16,
  kvCacheDtype: 'f16',
};

/** The notes, when the chat model is so; that the bundled models are toys is a case of its own. */
const notes = (argv: readonly string[], chat: Partial<ModelInfo> = {}): string[] =>
  allNotes(argv, chat).filter((note) => !note.includes('for real work'));

function allNotes(argv: readonly string[], chat: Partial<ModelInfo> = {}): string[] {
  const info: EngineInfo = {
    ...FAKE_INFO,
    models: FAKE_INFO.models.map((model) => (model.task === 'chat' ? { ...model, ...chat } : model)),
  };
  const banner = describeStart(parseServerConfig(['--host=127.0.0.1', ...argv], {}), info, [3000, 3001, 3002], 1).split('\n');
  return banner.filter((line) => line.startsWith('note')).map((line) => line.replace(/^note\s+/, ''));
}

const ranks = (...names: string[]): Partial<ModelInfo> => ({
  ranks: names.map((adapter) => ({ adapter, memory: MEMORY })),
  memory: MEMORY,
});

describe('ranks that share an adapter', () => {
  test('the reference settings on one adapter', () => {
    const [note, ...others] = notes(['--config', REFERENCE], ranks('llvmpipe', 'llvmpipe'));
    expect(note).toMatch(/^ranks 0 and 1 of the chat model share one adapter \(llvmpipe\)/);
    expect(others).toEqual([]);
  });

  test('two names for four ranks: who shares with whom', () => {
    const [first, second] = notes(['--adapters=A,B', '--tp-size=2', '--pp-size=2'], ranks('A', 'B', 'A', 'B'));
    expect(first).toContain('ranks 0 and 2 of the chat model share one adapter (A)');
    expect(second).toContain('ranks 1 and 3 of the chat model share one adapter (B)');
  });

  test('two cards of one make do not share, and a whole model does not either', () => {
    expect(notes(['--adapters=A10#0,A10#1'], ranks('NVIDIA A10', 'NVIDIA A10'))).toEqual([]);
    expect(notes([])).toEqual([]);
  });
});

test.each([
  [[], undefined],
  [['--speculative-mtp'], "the chat model's own head guesses 3 tokens a step"],
  [['--speculative-mtp', '--speculative-num-draft-tokens=1'], "the chat model's own head guesses 1 token a step"],
  [['--speculative-ngram'], 'at most 7 tokens a step are guessed from earlier text'],
])('%j: what is guessed', (argv, said) => {
  const banner = describeStart(parseServerConfig(argv, {}), FAKE_INFO, [3000, 3001, 3002], 1).split('\n');
  expect(banner.find((line) => line.startsWith('guesses'))).toBe(said && `guesses        ${said}`);
});

test('a language of speech that the transcription model does not know', () => {
  const said = (language: string): string | undefined => {
    const models = FAKE_INFO.models.map((model) => (model.task === 'transcription' ? { ...model, languages: ['en', 'de'] } : model));
    const config = parseServerConfig([`--transcription-language=${language}`], {});
    return describeStart(config, { ...FAKE_INFO, models }, [3000, 3001, 3002], 1).split('\n').find((line) => line.includes('--transcription-language')); // prettier-ignore
  };
  expect(said('ja')).toBe('note           --transcription-language ja has no effect: the transcription model does not know this language');
  expect([said('de'), said('auto')]).toEqual([undefined, undefined]);
});

test('names of voices that the speech model cannot speak', () => {
  const said = (...argv: string[]): string[] => notes(argv).filter((note) => note.includes('voice'));
  expect(said()).toEqual([]);
  expect(said('--voice-alias=alloy=aus-female-4|af_alloy,mine=nona(2)+oni,old=af_old|vulcan')).toEqual([]);
  expect(said('--voice-alias=mine=nonna,nona=oni,both=nona+nonna')).toEqual([
    "--voice-alias mine=nonna has no effect: the speech model does not have all voices of 'nonna'",
    "--voice-alias nona=oni has no effect: the speech model has a voice 'nona' of its own",
    "--voice-alias both=nona+nonna has no effect: the speech model does not have all voices of 'nona+nonna'",
  ]);
});

test('prompts in matrices: said where they are asked for, and where that has no effect', () => {
  const lines = (argv: readonly string[], numerics: ModelInfo['numerics']): string[] => {
    const models = FAKE_INFO.models.map((model) => (model.task === 'chat' ? { ...model, numerics } : model));
    const banner = describeStart(parseServerConfig(argv, {}), { ...FAKE_INFO, models } as EngineInfo, [3000, 3001, 3002], 1);
    return banner.split('\n').filter((line) => line.includes('matrices'));
  };
  expect(lines([], 'invariant')).toEqual([]);
  expect(lines(['--numerics=fast'], 'fast')).toEqual(['numerics       fast: prompts take subgroup matrices (docs/numerics.md)']);
  expect(lines(['--numerics=fast'], 'invariant')).toEqual([expect.stringMatching(/^note {11}--numerics fast has no effect: /)]);
});

describe('kernels that failed the self-test', () => {
  test('are named, with what takes their place', () => {
    const replaced = [{ kernel: 'linear_rows', by: 'linear_tile', why: 'does not compile' }];
    const info: EngineInfo = { ...FAKE_INFO, kernels: { tested: 12, replaced } };
    const banner = describeStart(parseServerConfig([], {}), info, [3000, 3001, 3002], 1);
    expect(banner).toContain('self-test      kernel linear_rows does not compile; linear_tile takes its place, which may be slower');
  });
});

describe('bundled models', () => {
  test('all three: the preset for any machine, with what it fetches', () => {
    expect(allNotes([])).toEqual([
      expect.stringMatching(
        /^the bundled models are toys; for real work: --preset small \(SmolLM2-135M-Instruct, Kokoro-82M-int8, whisper-base; 3\d\d MB\)$/,
      ),
    ]);
  });

  test('some: the flags of those', () => {
    expect(allNotes(['--chat-model=test/fixtures/llama-tiny-random'])).toEqual([
      expect.stringMatching(
        /^the bundled models for speech and transcription are toys; for real work: --speech-model Kokoro-82M-int8 --transcription-model whisper-base \(\d+ MB\)$/,
      ),
    ]);
    const [note] = allNotes(['--chat-model=none', '--speech-model=none']);
    expect(note).toMatch(/^the bundled model for transcription is a toy; for real work: --transcription-model whisper-base \(/);
  });

  test('none: nothing', () => {
    expect(allNotes(['--chat-model=test/fixtures/llama-tiny-random', '--speech-model=none', '--transcription-model=none'])).toEqual([]);
    expect(allNotes(['--preset=small'])).toEqual([]);
  });
});

describe('the context', () => {
  const own = { ownContextLength: 2048, contextLength: 2048 };

  test("asked for beyond the model's own: both numbers, wherever it was asked", () => {
    const expected = ["the chat model's own context is 2048 tokens, below the 4096 asked for (--context-length)"];
    expect(notes(['--context-length=4096'], own)).toEqual(expected);
    expect(notes(['--config', REFERENCE, '--tp-size=1'], own)).toEqual([expected[0]!.replace('4096', '32768')]);
  });

  test('within it, or not asked for: nothing', () => {
    expect(notes(['--context-length=2048'], own)).toEqual([]);
    expect(notes([], own)).toEqual([]);
  });
});
