/** Derives the JSON files of a Hugging Face folder for a Whisper of which CTranslate2's converter kept only the weights and some lists. */
import type { Json } from '../../util/json.ts';
import type { WhisperShape } from './whisper-tensors.ts';

/**
 * Vocabulary size from which a model is multilingual, as in CTranslate2. English-only checkpoints have one token fewer, and list the same
 * languages.
 */
const MULTILINGUAL_VOCABULARY = 51_865;
/** The same in every published Whisper; no file of the folder has it. */
const MAX_INITIAL_TIMESTAMP = 50;

/** The config.json as transformers writes it; sizes come from the weights' shapes. */
export function whisperConfig({
  encoder,
  decoder,
  vocabulary,
  channels,
  mels,
  sourcePositions,
  targetPositions,
  activation,
}: WhisperShape): Json {
  return {
    architectures: ['WhisperForConditionalGeneration'],
    model_type: 'whisper',
    vocab_size: vocabulary,
    num_mel_bins: mels,
    d_model: channels,
    encoder_layers: encoder.layers,
    encoder_attention_heads: encoder.heads,
    encoder_ffn_dim: encoder.ffn,
    decoder_layers: decoder.layers,
    decoder_attention_heads: decoder.heads,
    decoder_ffn_dim: decoder.ffn,
    max_source_positions: sourcePositions,
    max_target_positions: targetPositions,
    activation_function: activation,
    scale_embedding: false,
    tie_word_embeddings: true,
  };
}

/**
 * The generation_config.json: the lists in the folder's config.json, and ids by the tokens' names. The folder's `lang_ids` are not used:
 * those of English-only files start one too late.
 */
export function whisperGeneration({ vocabulary }: WhisperShape, settings: Json, ids: ReadonlyMap<string, number>): Json {
  const multilingual = vocabulary >= MULTILINGUAL_VOCABULARY;
  const start = ids.get('<|startoftranscript|>');
  const all = {
    alignment_heads: settings['alignment_heads'],
    suppress_tokens: settings['suppress_ids'],
    begin_suppress_tokens: settings['suppress_ids_begin'],
    decoder_start_token_id: start,
    eos_token_id: ids.get('<|endoftext|>'),
    no_timestamps_token_id: ids.get('<|notimestamps|>'),
    prev_sot_token_id: ids.get('<|startofprev|>'),
    max_initial_timestamp_index: MAX_INITIAL_TIMESTAMP,
    is_multilingual: multilingual,
  };
  if (!multilingual) return all;
  const languages = [...ids].filter(([token, id]) => /^<\|[a-z]{2,3}\|>$/.test(token) && id > (start ?? 0));
  const tasks = ['transcribe', 'translate'].flatMap((task) => (ids.has(`<|${task}|>`) ? [[task, ids.get(`<|${task}|>`)] as const] : []));
  return { ...all, lang_to_id: Object.fromEntries(languages), task_to_id: Object.fromEntries(tasks) };
}

/** The preprocessor_config.json: constants of Whisper's feature extractor, and windows as long as the encoder's positions. */
export function whisperPreprocessor({ mels }: WhisperShape): Json {
  return { feature_extractor_type: 'WhisperFeatureExtractor', feature_size: mels, sampling_rate: 16_000, hop_length: 160, n_fft: 400 };
}
