import { EngineError } from '../../errors.ts';
import type { Activation } from '../../ops/activation.ts';
import type { MelSettings } from '../../ops/spectral.ts';
import { describe } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { alignUp } from '../../util/math.ts';

/** Sizes of a Whisper checkpoint, from config.json and preprocessor_config.json (or processor_config.json). */
export interface WhisperConfig {
  readonly vocabulary: number;
  readonly channels: number;
  readonly encoder: StackConfig;
  readonly decoder: StackConfig;
  /** Positions that the encoder returns for a full window, S. */
  readonly sourcePositions: number;
  /** Most tokens of prompt and transcript together. */
  readonly targetPositions: number;
  readonly activation: Activation;
  readonly mel: MelSettings;
  /** Mel frames of the longest window that the encoder takes: two per position. */
  readonly frames: number;
  readonly windows: WindowSettings;
}

/** How audio is cut into windows, and how much of a window is encoded. */
export interface WindowSettings {
  /** Most samples in a window. */
  readonly samples: number;
  /** Most mel frames that a window is encoded with. */
  readonly frames: number;
  /**
   * Mel frames of silence after a window's audio; undefined = silence fills the encoder's longest window, as OpenAI's checkpoints were
   * trained.
   */
  readonly padding: number | undefined;
  /** Most decibels by which steady noise is attenuated; absent = it is left, as OpenAI's checkpoints were trained. */
  readonly denoise?: number;
}

export interface StackConfig {
  readonly layers: number;
  readonly heads: number;
  readonly ffn: number;
}

/** Special token ids, from generation_config.json, config.json and the tokenizer's added tokens, and decoding settings. */
export interface WhisperTokens {
  readonly start: number;
  readonly eos: number;
  /** ISO 639-1 code -> id; empty for English-only checkpoints. */
  readonly languages: ReadonlyMap<string, number>;
  readonly transcribe: number | undefined;
  /** Undefined in checkpoints without a language other than English to translate from. */
  readonly translate: number | undefined;
  readonly noTimestamps: number | undefined;
  /** Begins a prompt of the text before the audio; undefined where the checkpoint was not trained with any. */
  readonly previous: number | undefined;
  readonly noSpeech: number | undefined;
  /** First timestamp id; the vocabulary's size where there are none. */
  readonly timestampBegin: number;
  /** Latest timestamp that a transcript may begin with, in steps of 20 ms. */
  readonly maxInitialTimestamp: number;
  readonly suppress: readonly number[];
  /** Token ids suppressed as the first of a transcript. */
  readonly beginSuppress: readonly number[];
  /** Width of the beam search; 1 = greedy. */
  readonly beams: number;
  /**
   * A window's transcript is rejected when it compresses better than `compressionRatio` or its mean log-probability is below `logprob`. If
   * so, and the <|nospeech|> probability is above `noSpeech`, the window is silence.
   */
  readonly thresholds: { readonly compressionRatio: number; readonly logprob: number; readonly noSpeech: number };
}

const ACTIVATIONS: ReadonlyMap<unknown, Activation> = new Map([
  ['gelu', 'gelu'], ['gelu_new', 'gelu_tanh'], ['gelu_pytorch_tanh', 'gelu_tanh'], ['relu', 'relu'], ['silu', 'silu'],
]); // prettier-ignore

/** Bounds of audio settings, which no weight's shape confirms although tables are made from them; steps are those of the kernels. */
const AUDIO = {
  sampling_rate: { most: 192_000, step: 1 },
  n_fft: { most: 8192, step: 2 },
  hop_length: { most: 8192, step: 4 },
  feature_size: { most: 512, step: 1 },
} as const;

/**
 * Reads the sizes; throws EngineError('invalid_model') naming the field that is missing or not supported. `file` is the name of the file
 * that `preprocessor` is from.
 */
export function parseWhisperConfig(config: Json, preprocessor: Json, file = 'preprocessor_config.json'): WhisperConfig {
  const size = (json: Json, file: string, name: string): number => {
    const value = json[name];
    if (!Number.isInteger(value) || (value as number) <= 0) {
      throw new EngineError('invalid_model', `${file}: ${name} is ${describe(value)}, expected a positive integer`);
    }
    return value as number;
  };
  const model = (name: string): number => size(config, 'config.json', name);
  const audio = (name: keyof typeof AUDIO): number => {
    const value = size(preprocessor, file, name);
    const { most, step } = AUDIO[name];
    if (value <= most && value % step === 0) return value;
    throw new EngineError('invalid_model', `${file}: ${name} is ${value}, expected a multiple of ${step} of at most ${most}`);
  };
  const activation = ACTIVATIONS.get(config['activation_function']);
  if (!activation)
    throw new EngineError('invalid_model', `config.json: unknown activation_function ${String(config['activation_function'])}`);
  if (config['scale_embedding'] === true) throw new EngineError('invalid_model', 'config.json: scale_embedding is not supported');
  const channels = model('d_model');
  const stack = (side: string): StackConfig => {
    const heads = model(`${side}_attention_heads`);
    if (channels % (4 * heads) !== 0) {
      throw new EngineError('invalid_model', `config.json: ${channels} channels in ${heads} heads, expected a multiple of 4 a head`);
    }
    return { layers: model(`${side}_layers`), heads, ffn: model(`${side}_ffn_dim`) };
  };
  const sourcePositions = model('max_source_positions');
  const mel: MelSettings = {
    sampleRate: audio('sampling_rate'),
    fftSize: audio('n_fft'),
    hop: audio('hop_length'),
    mels: model('num_mel_bins'),
  };
  if (audio('feature_size') !== mel.mels) {
    throw new EngineError('invalid_model', `${file}: feature_size ${audio('feature_size')}, config.json wants ${mel.mels}`);
  }
  const frames = 2 * sourcePositions;
  return {
    vocabulary: model('vocab_size'),
    channels,
    encoder: stack('encoder'),
    decoder: stack('decoder'),
    sourcePositions,
    targetPositions: model('max_target_positions'),
    activation,
    mel,
    frames,
    windows: parseWindows(preprocessor, file, mel, frames),
  };
}

/**
 * Reads keys of our own beside the published ones: `window_seconds` is the longest window, `window_padding_seconds` the silence that is
 * encoded after it, `window_denoise_db` the attenuation of steady noise.
 */
function parseWindows(preprocessor: Json, file: string, { sampleRate, hop }: MelSettings, longest: number): WindowSettings {
  const number = (name: string, least: number, most: number): number | undefined => {
    const value = preprocessor[name];
    if (value === undefined || (typeof value === 'number' && value >= least && value <= most)) return value;
    throw new EngineError('invalid_model', `${file}: ${name} is ${describe(value)}, expected ${least} to ${most}`);
  };
  const seconds = (longest * hop) / sampleRate;
  const samples = Math.round((number('window_seconds', 1, seconds) ?? seconds) * sampleRate);
  const silence = number('window_padding_seconds', 0, seconds);
  const denoise = number('window_denoise_db', 0, MOST_DENOISE);
  const padding = silence === undefined ? undefined : Math.round((silence * sampleRate) / hop);
  return { samples, padding, frames: framesToEncode(samples, padding, hop, longest), ...(denoise !== undefined && { denoise }) };
}

/** Largest `window_denoise_db`: beyond it nothing quieter is left. */
const MOST_DENOISE = 60;

/** Frames are rounded up to this, so that the kernels compiled at warm-up fit a window of any length. */
const FRAME_STEP = 32;

function framesToEncode(samples: number, padding: number | undefined, hop: number, longest: number): number {
  return padding === undefined ? longest : Math.min(longest, alignUp(Math.ceil(samples / hop) + padding, FRAME_STEP));
}

/** Mel frames that a window of `samples` samples is encoded with. */
export function windowFrames({ windows, mel, frames }: WhisperConfig, samples: number): number {
  return framesToEncode(samples, windows.padding, mel.hop, frames);
}

/**
 * Collects the special ids. Newer checkpoints name them in generation_config.json; older ones only in the tokenizer (`added`) or as
 * forced_decoder_ids [[1, language], [2, task], [3, no timestamps]].
 */
export function parseWhisperTokens(config: Json, generation: Json, added: ReadonlyMap<string, number>, vocabulary: number): WhisperTokens {
  const id = (name: string): number | undefined => integer(generation[name]) ?? integer(config[name]);
  const start = id('decoder_start_token_id') ?? added.get('<|startoftranscript|>');
  const eos = firstOf(generation['eos_token_id']) ?? firstOf(config['eos_token_id']) ?? added.get('<|endoftext|>');
  if (start === undefined || eos === undefined) {
    throw new EngineError('invalid_model', 'the checkpoint names no decoder_start_token_id or no eos_token_id');
  }
  const noTimestamps = id('no_timestamps_token_id') ?? added.get('<|notimestamps|>');
  const named = recordOf(generation['lang_to_id']);
  const forced = generation['forced_decoder_ids'] ?? config['forced_decoder_ids'];
  // English-only checkpoints have the other languages' tokens too, but force nothing beyond <|notimestamps|>.
  const forcesTask = !Array.isArray(forced) || forced.length > 1;
  const multilingual = generation['is_multilingual'] ?? (named.size > 0 || (added.has('<|transcribe|>') && forcesTask));
  const fromTokenizer = [...added].filter(([name, token]) => /^<\|[a-z]{2,3}\|>$/.test(name) && token > start);
  const languages = new Map([...(named.size > 0 ? named : fromTokenizer)].map(([name, token]) => [name.replace(/[<|>]/g, ''), token]));
  const task = (name: string): number | undefined => recordOf(generation['task_to_id']).get(name) ?? added.get(`<|${name}|>`);
  // A key of our own, false in checkpoints that list the token without having been trained with it.
  const prompts = generation['trained_with_prompts'] !== false;
  const begin = noTimestamps === undefined ? vocabulary : noTimestamps + 1;
  const tokens: WhisperTokens = {
    start,
    eos,
    languages: multilingual ? languages : new Map(),
    transcribe: multilingual ? task('transcribe') : undefined,
    translate: multilingual && [...languages.keys()].some((language) => language !== 'en') ? task('translate') : undefined,
    noTimestamps,
    previous: prompts ? (id('prev_sot_token_id') ?? added.get('<|startofprev|>')) : undefined,
    noSpeech: added.get('<|nospeech|>') ?? added.get('<|nocaptions|>'),
    timestampBegin: Math.min(begin, vocabulary),
    maxInitialTimestamp: id('max_initial_timestamp_index') ?? 50,
    suppress: integers(generation['suppress_tokens'] ?? config['suppress_tokens']),
    beginSuppress: integers(generation['begin_suppress_tokens'] ?? config['begin_suppress_tokens']),
    beams: beamsOf(generation['num_beams']),
    // The field names are transformers', the defaults OpenAI's.
    thresholds: {
      compressionRatio: numberOf(generation['compression_ratio_threshold']) ?? 2.4,
      logprob: numberOf(generation['logprob_threshold']) ?? -1,
      noSpeech: numberOf(generation['no_speech_threshold']) ?? 0.6,
    },
  };
  const { previous, noSpeech, transcribe, suppress, beginSuppress } = tokens;
  const used = [start, eos, ...tokens.languages.values(), transcribe, noTimestamps, previous, noSpeech, ...suppress, ...beginSuppress];
  const wrong = used.find((token) => token !== undefined && (token < 0 || token >= vocabulary));
  if (wrong === undefined) return tokens;
  throw new EngineError('invalid_model', `generation_config.json or tokenizer.json names the token ${wrong}; the model has tokens 0 to ${vocabulary - 1}`); // prettier-ignore
}

/** The languages that a checkpoint transcribes, as ISO 639-1 codes; one without language tokens is English-only. */
export function languagesOf({ languages }: Pick<WhisperTokens, 'languages'>): readonly string[] {
  return languages.size > 0 ? [...languages.keys()] : ['en'];
}

/** A decoder's attention head: index of its layer, and of the head in the layer. */
export interface AlignmentHead {
  readonly layer: number;
  readonly head: number;
}

/** Most heads where the checkpoint names none: more cost memory without improving their mean. */
const MAX_UNNAMED_HEADS = 40;

/**
 * Heads whose cross-attention follows the speech word by word: generation_config.json's `alignment_heads`, pairs of layer and head. Without
 * them, or where they are those of a larger model that was distilled, the heads of the upper half of the layers as in OpenAI's code, at
 * most MAX_UNNAMED_HEADS of them.
 */
export function alignmentHeads(generation: Json, { layers, heads }: StackConfig): readonly AlignmentHead[] {
  const named = Array.isArray(generation['alignment_heads']) ? (generation['alignment_heads'] as readonly unknown[]) : [];
  const isHead = (pair: unknown): pair is [number, number] =>
    Array.isArray(pair) &&
    pair.length === 2 &&
    [layers, heads].every((end, i) => Number.isInteger(pair[i]) && pair[i] >= 0 && pair[i] < end);
  if (named.length > 0 && named.every(isHead)) return named.map(([layer, head]) => ({ layer, head }));
  const lower = Math.floor(layers / 2);
  const upper = (layers - lower) * heads;
  const step = Math.ceil(upper / MAX_UNNAMED_HEADS);
  return Array.from({ length: Math.ceil(upper / step) }, (_, i) => ({
    layer: lower + Math.floor((i * step) / heads),
    head: (i * step) % heads,
  }));
}

/**
 * Token ids that begin a transcript: start, language and task where the checkpoint has them, and <|notimestamps|> unless timestamps are
 * wanted.
 */
export function transcriptPrompt(
  tokens: WhisperTokens,
  language: string | undefined,
  timestamps: boolean,
  task: 'transcribe' | 'translate' = 'transcribe',
): number[] {
  const prompt = [tokens.start];
  const languageId = language === undefined ? undefined : tokens.languages.get(language);
  if (languageId !== undefined) prompt.push(languageId);
  const taskId = tokens[task];
  if (taskId !== undefined) prompt.push(taskId);
  if (!timestamps && tokens.noTimestamps !== undefined) prompt.push(tokens.noTimestamps);
  return prompt;
}

/** Wider beams would not fit a step beside other windows'. */
const MAX_BEAMS = 8;

function beamsOf(value: unknown = 1): number {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_BEAMS) return value as number;
  throw new EngineError('invalid_model', `generation_config.json: num_beams is ${describe(value)}, expected 1 to ${MAX_BEAMS}`);
}

const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);
const integer = (value: unknown): number | undefined => (Number.isInteger(value) ? (value as number) : undefined);
const firstOf = (value: unknown): number | undefined => integer(Array.isArray(value) ? value[0] : value);
/** -1 in a list of ids means "the tokenizer's non-speech tokens", which the published lists spell out. */
const integers = (value: unknown): number[] => (Array.isArray(value) ? value.filter((id) => Number.isInteger(id) && id >= 0) : []);

function recordOf(value: unknown): Map<string, number> {
  if (typeof value !== 'object' || value === null) return new Map();
  return new Map(Object.entries(value).filter((entry): entry is [string, number] => Number.isInteger(entry[1])));
}
