import { expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import type { VocabularyConfig } from '../../engine/models/layers/vocabulary.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import { textConfig, textWeights } from '../../engine/models/text-part.ts';
import { floatStorage } from '../../engine/config.ts';
import { WeightLoader } from '../../engine/models/weight-loader.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';

/** Every tensor's only value is its place in the list. */
function checkpointOf(names: readonly string[]): Checkpoint {
  return {
    names: () => names,
    tensor: (name) => (names.includes(name) ? { dtype: 'F32', shape: [1] } : undefined),
    read: async (name) => Float32Array.of(names.indexOf(name)),
    readIds: async () => new Int32Array(),
    close: async () => undefined,
  };
}

test.each([
  [
    'transformers 4',
    ['language_model.model.norm.weight', 'language_model.lm_head.weight', 'vision_tower.a.weight', 'multi_modal_projector.b'],
  ],
  [
    'transformers 5',
    ['model.language_model.norm.weight', 'lm_head.weight', 'model.vision_tower.a.weight', 'model.multi_modal_projector.b'],
  ],
  ['a text model', ['model.norm.weight', 'lm_head.weight']],
])('the weights of the text part have the names of a text model, as %s wrote them', async (_, names) => {
  const loader = textWeights(new WeightLoader({} as Device, checkpointOf(names), floatStorage('f32')));
  expect(loader.checkpoint.names()).toEqual(['model.norm.weight', 'lm_head.weight']);
  expect(await loader.data('model.norm.weight', [1])).toEqual(Float32Array.of(0));
  expect(await loader.data('lm_head.weight', [1])).toEqual(Float32Array.of(1));
  await expect(loader.finish()).resolves.toBeUndefined();
});

test('a tensor that belongs to no known part is not left out', async () => {
  const loader = textWeights(
    new WeightLoader({} as Device, checkpointOf(['language_model.model.norm.weight', 'third_eye.weight']), floatStorage('f32')),
  );
  await expect(loader.finish()).rejects.toThrow('2 tensors this architecture does not use: model.norm.weight, third_eye.weight');
});

test('a text part says of itself what the whole says otherwise', () => {
  expect(textConfig({ model_type: 'gemma3', eos_token_id: [1, 106], text_config: { model_type: 'gemma3_text', hidden_size: 8 } })).toEqual({
    model_type: 'gemma3_text',
    eos_token_id: [1, 106],
    hidden_size: 8,
    text_config: { model_type: 'gemma3_text', hidden_size: 8 },
  });
  // As transformers writes it again: the text part with the default of its class.
  const ends = { eos_token_id: [1, 106], text_config: { model_type: 'gemma3_text', eos_token_id: 1 } };
  expect(textConfig({ model_type: 'gemma3', ...ends })).toMatchObject({ model_type: 'gemma3_text', eos_token_id: [1, 106] });
  expect(textConfig({ model_type: 'gemma3', text_config: { eos_token_id: 1 } })).toMatchObject({ eos_token_id: 1 });
  expect(textConfig({ tie_word_embeddings: true, text_config: { tie_word_embeddings: true } })).toMatchObject({
    tie_word_embeddings: true,
  });
  expect(textConfig({ tie_word_embeddings: false, text_config: {} })).toMatchObject({ tie_word_embeddings: false });
  expect(textConfig({ model_type: 'gemma2' })).toEqual({ model_type: 'gemma2' });
});

// transformers 5 writes the default of each class, of which only the whole model's counts for it, and no head where that is the table.
test.each([
  [
    'mistral3',
    {
      model_type: 'mistral',
      hidden_size: 32,
      num_attention_heads: 2,
      num_key_value_heads: 2,
      intermediate_size: 32,
      num_hidden_layers: 2,
      vocab_size: 64,
    },
  ],
  ['gemma3', { model_type: 'gemma3_text' }],
  ['gemma3n', { model_type: 'gemma3n_text' }],
  ['gemma4', { model_type: 'gemma4_text' }],
  ['qwen3_5', { model_type: 'qwen3_5_text' }],
  ['qwen3_5_moe', { model_type: 'qwen3_5_moe_text' }],
])('%s: where the whole and its text part differ, the weights say whether the head is the table of tokens', (model_type, text) => {
  const tied = (whole: boolean, part: boolean): unknown => {
    const config = { model_type, tie_word_embeddings: whole, text_config: { ...text, tie_word_embeddings: part } };
    return (decoderFor(config).parseConfig(config) as unknown as VocabularyConfig).tied;
  };
  expect([tied(true, true), tied(false, false), tied(true, false), tied(false, true)]).toEqual([true, false, undefined, undefined]);
});
