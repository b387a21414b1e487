/**
 * The engine's requests and the events that answer them. All are plain data that structured cloning keeps, because the engine runs outside its caller: in a
 * child process under Node, in a Web Worker in the browser. `protocol.ts` says which operation takes and yields which of them.
 */

import type { SamplingParams } from './sampling.ts';

export type { SamplingParams };
export type * from './info.ts';
export type * from './status.ts';

export type ChatRole = 'system' | 'developer' | 'user' | 'assistant' | 'tool';

export interface ChatContentPart {
  readonly type: 'text';
  readonly text: string;
}

export interface ChatMessage {
  readonly role: ChatRole;
  readonly content: string | readonly ChatContentPart[] | null;
  readonly name?: string;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly unknown[];
  readonly reasoning_content?: string;
}

/** A function the model may call. */
export interface ToolDefinition {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the arguments; absent = none. */
  readonly parameters?: unknown;
  /** Enforce the schema of the arguments also when the model may choose whether to call (`toolChoice: 'auto'`). */
  readonly strict?: boolean;
}

/** The grammar that an answer is constrained to. */
export type ResponseFormat = { readonly type: 'json_object' } | { readonly type: 'json_schema'; readonly schema: unknown };

/** A token with its log-probability. `bytes` are its UTF-8 bytes; a character may be spread over several tokens. */
export interface TokenLogprob {
  readonly token: string;
  readonly bytes: readonly number[];
  readonly logprob: number;
}

export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  /** A raw prompt, as text or token ids, used instead of `messages` and without the chat template; the answer is then plain text. */
  readonly prompt?: string | readonly number[];
  /** What follows the text that is asked for, beside a `prompt` of text; '' = nothing. For models with tokens for that (fill in the middle). */
  readonly suffix?: string;
  /**
   * Tokens that the answer has to have after a prompt of token ids, all of them and no others, whatever the model would choose: a text is scored so, with
   * `logprobs`. They count against the context as a prompt does.
   */
  readonly forcedTokens?: readonly number[];
  readonly sampling: SamplingParams;
  /** Most tokens to generate; absent = as many as the context has room for. */
  readonly maxTokens?: number;
  /** Stop sequences: the answer ends before the first match. */
  readonly stop?: readonly string[];
  readonly stopTokenIds?: readonly number[];
  readonly ignoreEos?: boolean;
  /** Tokens before which neither end-of-sequence nor `stopTokenIds` can end the answer. Default 0. */
  readonly minTokens?: number;
  /** Leave special tokens out of the text. Default true. */
  readonly skipSpecialTokens?: boolean;
  /** Number of choices. Default 1. */
  readonly n?: number;
  /** Further variables for the chat template. */
  readonly templateKwargs?: Readonly<Record<string, unknown>>;
  /** Report each token's log-probability with this many alternatives (0..20); absent = no log-probabilities. */
  readonly logprobs?: number;
  readonly responseFormat?: ResponseFormat;
  readonly tools?: readonly ToolDefinition[];
  /** Default: auto if there are tools. */
  readonly toolChoice?: 'none' | 'auto' | 'required' | { readonly name: string };
  /** Whether an answer may have several tool calls. Default true. */
  readonly parallelToolCalls?: boolean;
  /** Id of the LoRA adapter that answers; absent = the model without any. */
  readonly lora?: string;
  /** Namespace of the prefix cache: cached prefixes are shared only between requests with the same salt. */
  readonly cacheSalt?: string;
  /** Higher goes first, if `enablePriorityScheduling` is on. Default 0. */
  readonly priority?: number;
  /** Continue the last message, which is the assistant's, instead of answering it. */
  readonly continueFinalMessage?: boolean;
  /** Report the reasoning of a reasoning model separately, instead of leaving it and its tags in the text. Default true. */
  readonly separateReasoning?: boolean;
}

/** Text to tokenise: a raw prompt, or messages rendered with the chat template. */
export interface TokenizeRequest {
  readonly prompt?: string;
  readonly messages?: readonly ChatMessage[];
  /** Add the tokenizer's special tokens (such as BOS) to a raw prompt. Default true. Chat templates write their own. */
  readonly addSpecialTokens?: boolean;
}

/** What a program needs that renders prompts and tells tokens apart itself; null = the model has none. */
export interface TokenizerInfo {
  readonly bosToken: string | null;
  readonly eosToken: string | null;
  /** Jinja source of the chat template. */
  readonly chatTemplate: string | null;
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

/**
 * Events in order: one `start`, deltas, one `finish` per choice; then the iterator ends. `start` comes after validation, tokenisation and admission, so a
 * failure before it can still be answered with a plain error.
 */
export type ChatEvent =
  | { readonly type: 'start'; readonly promptTokens: number; readonly cachedTokens: number }
  | {
      readonly type: 'delta';
      readonly index: number;
      readonly text: string;
      readonly tokens: number;
      /** Reasoning of a reasoning model, which is not part of the answer. */
      readonly reasoning?: string;
      /** `call` numbers the calls of the choice from 0. The name comes first, then pieces of the arguments' JSON text. */
      readonly toolCalls?: readonly { readonly call: number; readonly name?: string; readonly arguments?: string }[];
      readonly logprobs?: readonly (TokenLogprob & { readonly top: readonly TokenLogprob[] })[];
    }
  | {
      readonly type: 'finish';
      readonly index: number;
      readonly reason: FinishReason;
      /** The stop sequence or stop token id that ended the choice; null if neither did. */
      readonly stopReason: string | number | null;
      readonly completionTokens: number;
      readonly cachedTokens: number;
    };

export interface SpeechRequest {
  readonly text: string;
  readonly voice: string;
  /** The language of the text: a tag (es, pt-BR), a name (Spanish), or Kokoro's letter (e). Default: the voice's own. */
  readonly language?: string;
  /** 0.25..4; default 1. */
  readonly speed?: number;
  /** Any 64-bit integer; absent = random. The `start` event has the seed that is used. */
  readonly seed?: number;
}

/** Events in order: one `start`, one or more `audio` chunks per sentence, one `finish`. */
export type SpeechEvent =
  | { readonly type: 'start'; readonly seed: number; readonly sampleRate: number }
  | { readonly type: 'audio'; readonly samples: Float32Array; readonly text: string }
  | { readonly type: 'finish'; readonly inputTokens: number; readonly frames: number; readonly seconds: number };

/**
 * A file of mono samples at 16 kHz, little-endian and without a header, that caller and engine can both read. The engine reads it window by window; the caller
 * removes it once the call has ended.
 */
export interface SampleFile {
  readonly path: string;
  /** `s16` = 16-bit integers with full scale 0x8000, which is lossless for a source of 16 bits. */
  readonly encoding: 's16' | 'f32';
  /** Number of samples. */
  readonly length: number;
}

export interface TranscriptionRequest<Samples extends Float32Array | SampleFile = Float32Array> {
  /** Mono samples at 16 kHz in -1..1; engine/audio decodes and resamples. */
  readonly samples: Samples;
  /** ISO 639-1 code; absent = detected by the model, or its only language. */
  readonly language?: string;
  /** Text that the model is told came before the audio, as a hint on spelling and style. */
  readonly prompt?: string;
  /** Default 0 = the likeliest text; a window whose text is too repetitive or too unlikely is decoded again at 0.2, 0.4 ... 1. */
  readonly temperature?: number;
  /** Which times to report; `word` = of segments and of their words. */
  readonly timestamps?: 'none' | 'segment' | 'word';
  /** Report the log-probability of each token. */
  readonly logprobs?: boolean;
  /** Default transcribe. `translate` writes English, with models whose `translates` is true. */
  readonly task?: 'transcribe' | 'translate';
  /** Skip audio without speech, by these rules if given. Default true if the engine has a voice activity model. */
  readonly vad?: boolean | VadRules;
}

/** Rules of voice activity detection, as in OpenAI's `server_vad`. */
export interface VadRules {
  /** Probability of speech from which on audio counts as speech. */
  readonly threshold: number;
  /** Audio kept before speech, in ms. */
  readonly prefixPaddingMs: number;
  /** Silence that ends speech, in ms. */
  readonly silenceDurationMs: number;
}

/** A word with its times, in seconds from the start of the audio. */
export interface TranscriptWord {
  /** The word as it stands in the segment's text, with its punctuation and the space before it. */
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export interface TranscriptSegment {
  readonly id: number;
  /** Start and end in seconds from the start of the audio. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly tokens: readonly number[];
  /** Start of the segment's window, in hundredths of a second. This and the four fields below are the same for all segments of a window. */
  readonly seek: number;
  /** Temperature that the window was decoded with: the request's, or, if that is 0, the first one whose text was neither too repetitive nor too unlikely. */
  readonly temperature: number;
  /** Mean log-probability of the window's tokens. */
  readonly avgLogprob: number;
  /** Size of the window's text over its size compressed by zlib; high where the model repeats itself. */
  readonly compressionRatio: number;
  /** Probability that the window has no speech; 0 if the model has no token for that. */
  readonly noSpeechProb: number;
  /** Words in order; present if the request asked for `word` times. */
  readonly words?: readonly TranscriptWord[];
  /** Log-probabilities of `tokens`; present if the request asked for them. */
  readonly logprobs?: readonly TokenLogprob[];
}

/** Events in order: one `start`, the segments (at least one for each window with speech), one `finish` with the whole text. */
export type TranscriptionEvent =
  | {
      readonly type: 'start';
      readonly duration: number;
      readonly language: string;
      /** The likeliest language of the first window with sound; present if the request named none. `language` is the fallback instead if this one is too unlikely. */
      readonly detected?: { readonly language: string; readonly probability: number };
      /** One sentence for each part of the request that is ignored or changed. */
      readonly warnings?: readonly string[];
    }
  | { readonly type: 'segment'; readonly segment: TranscriptSegment }
  | {
      readonly type: 'finish';
      readonly text: string;
      readonly duration: number;
      /** Tokens of the audio and of the prompts of all windows. */
      readonly inputTokens: number;
      /** The part of `inputTokens` that is audio: frames of the encoder's output. */
      readonly audioTokens: number;
      readonly outputTokens: number;
    };
