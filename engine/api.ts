/**
 * What a caller may ask of the engine and what comes back. These are plain data (structured-clone
 * safe), because the engine runs outside its caller: in a child process under Node, in a Web Worker
 * in the browser. `protocol.ts` says which operation takes and gives which of them.
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
  /** Arguments are held to the schema also where the model may choose not to call. */
  readonly strict?: boolean;
}

/** What an answer must look like. */
export type ResponseFormat = { readonly type: 'json_object' } | { readonly type: 'json_schema'; readonly schema: unknown };

/** One token and its log-probability; `bytes` are its UTF-8 bytes, of which several tokens may make one character. */
export interface TokenLogprob {
  readonly token: string;
  readonly bytes: readonly number[];
  readonly logprob: number;
}

export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  /** Goes to the model as it is, text or tokens, in place of the messages and their template; the answer is then plain text. */
  readonly prompt?: string | readonly number[];
  readonly sampling: SamplingParams;
  /** Hard cap of generated tokens; absent = to the edge of the context. */
  readonly maxTokens?: number;
  /** Strings that end the answer; the text is cut before the match. */
  readonly stop?: readonly string[];
  readonly stopTokenIds?: readonly number[];
  readonly ignoreEos?: boolean;
  /** The answer cannot end by a token (end of sequence, stopTokenIds) before it has this many. Default 0. */
  readonly minTokens?: number;
  /** false = special tokens stay in the text. Default true. */
  readonly skipSpecialTokens?: boolean;
  /** Number of choices. */
  readonly n?: number;
  /** Extra variables for the chat template. */
  readonly templateKwargs?: Readonly<Record<string, unknown>>;
  /** Report each token's log-probability with this many alternatives (0..20); absent = not. */
  readonly logprobs?: number;
  readonly responseFormat?: ResponseFormat;
  readonly tools?: readonly ToolDefinition[];
  /** Default auto where there are tools. */
  readonly toolChoice?: 'none' | 'auto' | 'required' | { readonly name: string };
  /** false = at most one call. Default true. */
  readonly parallelToolCalls?: boolean;
  /** Namespace of the prefix cache: requests share cached prefixes only within it. */
  readonly cacheSalt?: string;
  /** Higher goes first, where the engine heeds priorities. Default 0. */
  readonly priority?: number;
  /** Go on with the last message, the assistant's, instead of answering it. */
  readonly continueFinalMessage?: boolean;
  /** false = leave a thinking model's tags in the text. Default true. */
  readonly separateReasoning?: boolean;
}

/** Text to tokenise: a prompt as it is, or messages as the model's template renders them. */
export interface TokenizeRequest {
  readonly prompt?: string;
  readonly messages?: readonly ChatMessage[];
  /** Whether a prompt gets the tokenizer's own, such as the beginning of a sequence; default true. Templates write theirs. */
  readonly addSpecialTokens?: boolean;
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

/**
 * Order: one `start` (after validation, tokenisation and admission: nothing was sent before it, so a
 * failure there is still a clean error), then deltas, then one `finish` a choice, then the iterator ends.
 */
export type ChatEvent =
  | { readonly type: 'start'; readonly promptTokens: number; readonly cachedTokens: number }
  | {
      readonly type: 'delta';
      readonly index: number;
      readonly text: string;
      readonly tokens: number;
      /** A thinking model's thoughts, apart from the answer. */
      readonly reasoning?: string;
      /** `call` counts within the choice; the name comes first, then pieces of the arguments' JSON text. */
      readonly toolCalls?: readonly { readonly call: number; readonly name?: string; readonly arguments?: string }[];
      readonly logprobs?: readonly (TokenLogprob & { readonly top: readonly TokenLogprob[] })[];
    }
  | {
      readonly type: 'finish';
      readonly index: number;
      readonly reason: FinishReason;
      /** The stop string or stop token id that matched, else null. */
      readonly stopReason: string | number | null;
      readonly completionTokens: number;
      readonly cachedTokens: number;
    };

export interface SpeechRequest {
  readonly text: string;
  readonly voice: string;
  /** 0.25..4; default 1. */
  readonly speed?: number;
  /** Any integer of 64 bits; absent = random (the chosen one is in `start`). */
  readonly seed?: number;
}

/** One `start`, then `audio` chunks (one or more a sentence, in order), then one `finish`. */
export type SpeechEvent =
  | { readonly type: 'start'; readonly seed: number; readonly sampleRate: number }
  | { readonly type: 'audio'; readonly samples: Float32Array; readonly text: string }
  | { readonly type: 'finish'; readonly inputTokens: number; readonly frames: number; readonly seconds: number };

/**
 * Mono samples at 16 kHz in a file that caller and engine can both read, without a header and little-endian. The engine reads windows of it as
 * it needs them; the caller removes it once the call has ended.
 */
export interface SampleFile {
  readonly path: string;
  /** `s16` = 16-bit integers of full scale 0x8000: what the source held, so that nothing is lost. */
  readonly encoding: 's16' | 'f32';
  /** Samples. */
  readonly length: number;
}

export interface TranscriptionRequest<Samples extends Float32Array | SampleFile = Float32Array> {
  /** Mono samples at 16 kHz, -1..1 (engine/audio does decoding and resampling). */
  readonly samples: Samples;
  /** ISO-639-1; absent = the model's own detection or only language. */
  readonly language?: string;
  /** Text that precedes the audio (spelling hints). */
  readonly prompt?: string;
  /** 0 (default) = the likeliest text, and where that is too repetitive or too unlikely a window is decoded again at 0.2, 0.4 ... 1. */
  readonly temperature?: number;
  /** `word`: of segments, and of the words in them. */
  readonly timestamps?: 'none' | 'segment' | 'word';
  /** Whether segments tell of each token how likely it was. */
  readonly logprobs?: boolean;
  /** Default transcribe; `translate` writes English, where the model's `translates` says so. */
  readonly task?: 'transcribe' | 'translate';
  /** Whether audio in which nobody speaks is left out, or by which rules; default true where the engine has a model that tells. */
  readonly vad?: boolean | VadRules;
}

/** What counts as speech, as OpenAI's `server_vad` says it. */
export interface VadRules {
  /** Probability from which on a moment is speech. */
  readonly threshold: number;
  /** Audio before speech that is kept, ms. */
  readonly prefixPaddingMs: number;
  /** Silence that ends speech, ms. */
  readonly silenceDurationMs: number;
}

/** Seconds from the start of the audio. */
export interface TranscriptWord {
  /** As it is in the segment's text: punctuation belongs to its word, a space to the word after it. */
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export interface TranscriptSegment {
  readonly id: number;
  /** Seconds from the start of the audio. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly tokens: readonly number[];
  /** Where the window that it was heard in begins, in hundredths of a second; what follows is the same for all segments of that window. */
  readonly seek: number;
  /** That the window was decoded with: the request's, or where that is 0 the first at which the text was neither too repetitive nor too unlikely. */
  readonly temperature: number;
  /** Mean log-probability of the window's tokens. */
  readonly avgLogprob: number;
  /** Bytes of the window's text over bytes packed by zlib: high where a model repeats itself. */
  readonly compressionRatio: number;
  /** Probability that nobody speaks in the window; 0 where the model has no token for it. */
  readonly noSpeechProb: number;
  /** In order; there when they were asked for. */
  readonly words?: readonly TranscriptWord[];
  /** Of `tokens`, when they were asked for. */
  readonly logprobs?: readonly TokenLogprob[];
}

/** `segment`s in order (at least one a window that holds speech), then one `finish` with the whole text. */
export type TranscriptionEvent =
  | {
      readonly type: 'start';
      readonly duration: number;
      readonly language: string;
      /** What was heard in the first window with sound, where nobody said the language: the likeliest of those that the model knows. `language` is another where it was unlikely. */
      readonly detected?: { readonly language: string; readonly probability: number };
      /** What of the request is served otherwise than asked, in a sentence each. */
      readonly warnings?: readonly string[];
    }
  | { readonly type: 'segment'; readonly segment: TranscriptSegment }
  | {
      readonly type: 'finish';
      readonly text: string;
      readonly duration: number;
      /** Of the audio and of the prompts of all windows. */
      readonly inputTokens: number;
      /** Those of the audio: its frames as the decoder sees them. */
      readonly audioTokens: number;
      readonly outputTokens: number;
    };
