import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseWhisperConfig, parseWhisperTokens, transcriptPrompt, windowFrames } from '../../engine/models/whisper/config.ts';
import { readWhisperFolder } from '../../engine/models/whisper/load.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { huggingFaceFolder } from '../../engine/weights/hugging-face-folder.ts';

/** Special tokens of OpenAI's multilingual vocabulary (51,865) and of the English-only one (51,864), as far as they matter. */
function specials(end: number): ReadonlyMap<string, number> {
  const names = ['<|endoftext|>', '<|startoftranscript|>', '<|en|>', '<|zh|>', '<|haw|>'];
  const tail = ['<|translate|>', '<|transcribe|>', '<|startoflm|>', '<|startofprev|>', '<|nospeech|>', '<|notimestamps|>'];
  return new Map([...names.map((name, i) => [name, end + i] as const), ...tail.map((name, i) => [name, end + 101 + i] as const)]);
}

const CONFIG = {
  model_type: 'whisper', vocab_size: 51865, num_mel_bins: 80, d_model: 384, encoder_layers: 4, decoder_layers: 4, encoder_attention_heads: 6,
  decoder_attention_heads: 6, encoder_ffn_dim: 1536, decoder_ffn_dim: 1536, max_source_positions: 1500, max_target_positions: 448,
  activation_function: 'gelu', scale_embedding: false,
}; // prettier-ignore
const PREPROCESSOR = { feature_size: 80, sampling_rate: 16000, n_fft: 400, hop_length: 160 };

describe('readWhisperFolder', () => {
  const read = async (files: Readonly<Record<string, unknown>>): ReturnType<typeof readWhisperFolder> => {
    const path = mkdtempSync(join(tmpdir(), 'parley-'));
    onTestFinished(() => rmSync(path, { recursive: true }));
    const all = { 'config.json': { ...CONFIG, decoder_start_token_id: 50258, eos_token_id: 50257 }, ...files };
    for (const [name, json] of Object.entries(all)) writeFileSync(join(path, name), JSON.stringify(json));
    return readWhisperFolder(huggingFaceFolder({ platform: createNodePlatform(), path, id: 'model' }));
  };

  test('finds the extractor in a file of its own, or in the one of a whole processor', async () => {
    const own = await read({ 'preprocessor_config.json': PREPROCESSOR });
    // WhisperProcessor.save_pretrained of transformers 5 writes no other.
    const whole = await read({ 'processor_config.json': { feature_extractor: PREPROCESSOR, processor_class: 'WhisperProcessor' } });
    expect(whole).toEqual(own);
  });

  test('names the file that is wrong, or missing', async () => {
    await expect(read({ 'processor_config.json': { feature_extractor: { ...PREPROCESSOR, feature_size: 128 } } })).rejects.toThrow(
      'processor_config.json: feature_size 128, config.json wants 80',
    );
    await expect(read({ 'processor_config.json': { processor_class: 'WhisperProcessor' } })).rejects.toThrow(
      /file not found: .*preprocessor_config.json/,
    );
  });
});

describe('parseWhisperConfig', () => {
  test('reads the sizes of a public checkpoint', () => {
    expect(parseWhisperConfig(CONFIG, PREPROCESSOR)).toEqual({
      vocabulary: 51865, channels: 384, encoder: { layers: 4, heads: 6, ffn: 1536 }, decoder: { layers: 4, heads: 6, ffn: 1536 },
      sourcePositions: 1500, targetPositions: 448, activation: 'gelu', frames: 3000,
      mel: { sampleRate: 16000, fftSize: 400, hop: 160, mels: 80 }, windows: { samples: 480000, frames: 3000, padding: undefined },
    }); // prettier-ignore
  });

  test('encodes a full window whatever it holds, unless the checkpoint says how much silence it wants', () => {
    const parse = (preprocessor: object): ReturnType<typeof parseWhisperConfig> =>
      parseWhisperConfig(CONFIG, { ...PREPROCESSOR, ...preprocessor });
    expect(windowFrames(parse({}), 16000)).toBe(3000);
    const shorter = parse({ window_seconds: 10 });
    expect(shorter.windows).toEqual({ samples: 160000, frames: 3000, padding: undefined });
    expect(windowFrames(shorter, 16000)).toBe(3000);
    const own = parse({ window_seconds: 10, window_padding_seconds: 0.5 });
    expect(own.windows).toEqual({ samples: 160000, frames: 1056, padding: 50 });
    // Sound and silence in whole steps of 32 frames.
    expect([1, 16000, 17440, 160000].map((samples) => windowFrames(own, samples))).toEqual([64, 160, 160, 1056]);
    const long = parse({ window_padding_seconds: 0.5 });
    expect(long.windows).toEqual({ samples: 480000, frames: 3000, padding: 50 });
    expect(windowFrames(long, 480000)).toBe(3000);
    expect(parse({ window_denoise_db: 9 }).windows).toEqual({ samples: 480000, frames: 3000, padding: undefined, denoise: 9 });
  });

  test('names what is missing, wrong or not supported', () => {
    const parse = (config: object, preprocessor: object = {}): unknown =>
      parseWhisperConfig({ ...CONFIG, ...config }, { ...PREPROCESSOR, ...preprocessor });
    expect(() => parse({ d_model: undefined })).toThrow(/config.json: d_model is undefined/);
    expect(() => parse({ encoder_layers: 2.5 })).toThrow(/encoder_layers is 2.5/);
    expect(() => parse({ decoder_attention_heads: 7 })).toThrow(/384 channels in 7 heads/);
    expect(() => parse({ activation_function: 'mish' })).toThrow(/activation_function mish/);
    expect(() => parse({ scale_embedding: true })).toThrow(/scale_embedding/);
    expect(() => parse({}, { feature_size: 128 })).toThrow(/feature_size 128, config.json wants 80/);
    for (const window_seconds of [0.5, 31, '10', null]) {
      expect(() => parse({}, { window_seconds })).toThrow(`window_seconds is ${JSON.stringify(window_seconds)}, expected 1 to 30`);
    }
    expect(() => parse({}, { window_padding_seconds: -1 })).toThrow(/window_padding_seconds is -1, expected 0 to 30/);
    expect(() => parse({}, { window_denoise_db: 61 })).toThrow(/window_denoise_db is 61, expected 0 to 60/);
  });
});

describe('parseWhisperTokens and transcriptPrompt', () => {
  const added = specials(50257);
  const steering = { eos_token_id: 50257, decoder_start_token_id: 50258 };

  test('follow generation_config.json where it has everything', () => {
    const generation = {
      ...steering, is_multilingual: true, lang_to_id: { '<|en|>': 50259, '<|zh|>': 50260 }, task_to_id: { transcribe: 50359, translate: 50358 },
      no_timestamps_token_id: 50363, prev_sot_token_id: 50361, suppress_tokens: [1, 2], begin_suppress_tokens: [220, 50257],
      max_initial_timestamp_index: 40,
    }; // prettier-ignore
    const tokens = parseWhisperTokens({ ...CONFIG, suppress_tokens: [9] }, generation, added, 51865);
    expect(tokens).toMatchObject({
      start: 50258, eos: 50257, transcribe: 50359, noTimestamps: 50363, previous: 50361, timestampBegin: 50364, maxInitialTimestamp: 40,
      suppress: [1, 2], beginSuppress: [220, 50257],
    }); // prettier-ignore
    expect(transcriptPrompt(tokens, 'zh', false)).toEqual([50258, 50260, 50359, 50363]);
    expect(transcriptPrompt(tokens, 'en', true)).toEqual([50258, 50259, 50359]);
  });

  test('fall back to the tokenizer for older multilingual checkpoints', () => {
    const forced = [[1, 50259], [2, 50359], [3, 50363]]; // prettier-ignore
    const tokens = parseWhisperTokens({ ...CONFIG, ...steering, suppress_tokens: [-1, 7], forced_decoder_ids: forced }, {}, added, 51865);
    expect([...tokens.languages]).toEqual([['en', 50259], ['zh', 50260], ['haw', 50261]]); // prettier-ignore
    // Special tokens lie 101 after the end in this shortened vocabulary.
    expect(transcriptPrompt(tokens, 'haw', false)).toEqual([50258, 50261, 50359, 50363]);
    expect(tokens.suppress).toEqual([7]);
  });

  test('know English-only checkpoints by their generation_config or by what they force', () => {
    const english = specials(50256);
    const start = { eos_token_id: 50256, decoder_start_token_id: 50257 };
    for (const generation of [{ is_multilingual: false }, { forced_decoder_ids: [[1, 50362]] }]) {
      const tokens = parseWhisperTokens({ ...CONFIG, vocab_size: 51864, ...start }, generation, english, 51864);
      expect(tokens.languages.size).toBe(0);
      expect(transcriptPrompt(tokens, 'en', false)).toEqual([50257, 50362]);
      expect(transcriptPrompt(tokens, undefined, true)).toEqual([50257]);
      expect(tokens.timestampBegin).toBe(50363);
    }
  });

  test('search with as many beams as generation_config wants, one where it says nothing', () => {
    const beams = (generation: Record<string, unknown>): number =>
      parseWhisperTokens({ ...CONFIG, ...steering }, generation, added, 51865).beams;
    expect(beams({})).toBe(1);
    expect(beams({ num_beams: 5 })).toBe(5);
    for (const wrong of [0, 2.5, 100, 'many']) expect(() => beams({ num_beams: wrong })).toThrow(/num_beams is .*, expected 1 to 8/);
  });

  test('translate where there is a task for it and a language besides English', () => {
    const generation = { is_multilingual: true, lang_to_id: { '<|en|>': 50259, '<|zh|>': 50260 }, ...steering };
    const tokens = parseWhisperTokens(CONFIG, generation, added, 51865);
    expect(transcriptPrompt(tokens, 'zh', true, 'translate')).toEqual([50258, 50260, added.get('<|translate|>')]);
    for (const lang_to_id of [{ '<|en|>': 50259 }, undefined]) {
      const monolingual = parseWhisperTokens(
        CONFIG,
        { ...generation, lang_to_id, is_multilingual: lang_to_id !== undefined },
        added,
        51865,
      );
      expect(monolingual.translate).toBeUndefined();
    }
  });

  test('take no prompt where generation_config says that the checkpoint was not trained with any', () => {
    const previous = (generation: Record<string, unknown>): number | undefined =>
      parseWhisperTokens({ ...CONFIG, ...steering }, generation, added, 51865).previous;
    expect(previous({})).toBe(added.get('<|startofprev|>'));
    expect(previous({ prev_sot_token_id: 50361, trained_with_prompts: true })).toBe(50361);
    expect(previous({ prev_sot_token_id: 50361, trained_with_prompts: false })).toBeUndefined();
  });

  test('refuse a checkpoint that names no beginning', () => {
    expect(() => parseWhisperTokens(CONFIG, {}, new Map(), 51865)).toThrow(/decoder_start_token_id/);
  });
});
