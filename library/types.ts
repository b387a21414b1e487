/**
 * The public types: requests and answers of the OpenAI API, with the official client's names and shapes so that code can be moved, and the options of loading. They
 * import no types of other packages. test/fixtures/library/types.ts compares them with the client's own.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import type { Stream } from './stream.ts';

/** Options of every call. */
export interface RequestOptions {
  /** Aborts the call, which then rejects with APIUserAbortError; a stream that has begun just ends. */
  readonly signal?: AbortSignal | null | undefined;
}

export interface ChatCompletionContentPartText {
  text: string;
  type: 'text';
}

export interface ChatCompletionMessageFunctionToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

export type ChatCompletionMessageParam =
  | { role: 'system' | 'developer' | 'user'; content: string | ChatCompletionContentPartText[]; name?: string }
  | {
      role: 'assistant';
      content?: string | ChatCompletionContentPartText[] | null;
      name?: string;
      tool_calls?: ChatCompletionMessageFunctionToolCall[];
      reasoning_content?: string | null;
    }
  | { role: 'tool'; content: string | ChatCompletionContentPartText[]; tool_call_id: string };

export interface ChatCompletionFunctionTool {
  type: 'function';
  function: { name: string; description?: string; parameters?: Record<string, unknown>; strict?: boolean | null };
}

export type ChatCompletionToolChoiceOption =
  | 'none'
  | 'auto'
  | 'required'
  | { type: 'function'; function: { name: string } }
  | ChatCompletionAllowedToolChoice;

export interface ChatCompletionAllowedToolChoice {
  type: 'allowed_tools';
  allowed_tools: { mode: 'auto' | 'required'; tools: { type: 'function'; function: { name: string } }[] };
}

export type ResponseFormat =
  | { type: 'text' }
  | { type: 'json_object' }
  | { type: 'json_schema'; json_schema: { name: string; description?: string; schema?: Record<string, unknown>; strict?: boolean | null } };

/** Sampling parameters. Those without a comment are as in OpenAI's API. */
export interface SamplingParams {
  temperature?: number | null;
  top_p?: number | null;
  frequency_penalty?: number | null;
  presence_penalty?: number | null;
  seed?: number | null;
  logit_bias?: Record<string, number> | null;
  /** Sample from the k likeliest tokens only. */
  top_k?: number | null;
  /** Sample only from tokens with at least this share of the likeliest token's probability. */
  min_p?: number | null;
  /** Penalty on tokens that occurred before: divides positive logits and multiplies negative ones; 1 = off. */
  repetition_penalty?: number | null;
}

export interface ChatCompletionCreateParamsBase extends SamplingParams {
  messages: ChatCompletionMessageParam[];
  /** Optional, since a Parley has one model per task. */
  model?: string | null;
  max_completion_tokens?: number | null;
  max_tokens?: number | null;
  min_tokens?: number | null;
  stop?: string | null | string[];
  stop_token_ids?: number[] | null;
  ignore_eos?: boolean | null;
  skip_special_tokens?: boolean | null;
  n?: number | null;
  logprobs?: boolean | null;
  top_logprobs?: number | null;
  response_format?: ResponseFormat;
  tools?: ChatCompletionFunctionTool[];
  tool_choice?: ChatCompletionToolChoiceOption;
  parallel_tool_calls?: boolean;
  reasoning_effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | null;
  /** Further variables for the model's chat template. */
  chat_template_kwargs?: Record<string, unknown> | null;
  continue_final_message?: boolean | null;
  separate_reasoning?: boolean | null;
  /** Has an effect only with `engine: { enablePriorityScheduling: true }`. */
  priority?: number | null;
  /** Cached prefixes are shared only between requests with the same salt. */
  cache_salt?: string | null;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean; include_obfuscation?: boolean; continuous_usage_stats?: boolean } | null;
  user?: string;
  prompt_cache_key?: string | null;
}

export interface ChatCompletionCreateParamsNonStreaming extends ChatCompletionCreateParamsBase {
  stream?: false | null;
}
export interface ChatCompletionCreateParamsStreaming extends ChatCompletionCreateParamsBase {
  stream: true;
}
export type ChatCompletionCreateParams = ChatCompletionCreateParamsNonStreaming | ChatCompletionCreateParamsStreaming;

export interface TopLogprob {
  token: string;
  bytes: number[] | null;
  logprob: number;
}
export interface ChatCompletionTokenLogprob extends TopLogprob {
  top_logprobs: TopLogprob[];
}
export interface ChoiceLogprobs {
  content: ChatCompletionTokenLogprob[] | null;
  refusal: ChatCompletionTokenLogprob[] | null;
}
export type ChatFinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number; audio_tokens: number };
  completion_tokens_details: {
    reasoning_tokens: number;
    audio_tokens: number;
    accepted_prediction_tokens: number;
    rejected_prediction_tokens: number;
  };
}

export interface ChatCompletionMessage {
  role: 'assistant';
  content: string | null;
  refusal: string | null;
  tool_calls?: ChatCompletionMessageFunctionToolCall[];
  /** The reasoning of a reasoning model, separate from its answer. */
  reasoning_content?: string;
}

export interface ChatCompletion {
  id: string;
  object: 'chat.completion';
  created: number;
  model: string;
  system_fingerprint: string;
  choices: {
    index: number;
    message: ChatCompletionMessage;
    finish_reason: ChatFinishReason;
    logprobs: ChoiceLogprobs | null;
    /** The stop sequence or stop token that ended the choice; null if neither did. */
    stop_reason: string | number | null;
  }[];
  usage: CompletionUsage;
}

export interface ChatCompletionChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  system_fingerprint: string;
  choices: {
    index: number;
    delta: {
      role?: 'assistant';
      content?: string | null;
      reasoning_content?: string;
      tool_calls?: { index: number; id?: string; type?: 'function'; function?: { name?: string; arguments?: string } }[];
    };
    finish_reason: ChatFinishReason | null;
    logprobs?: ChoiceLogprobs | null;
    stop_reason?: string | number | null;
  }[];
  usage?: CompletionUsage | null;
}

export interface SpeechCreateParams {
  input: string;
  model?: string | null;
  voice: string | { id: string };
  /** Default: mp3 in Node, wav in a page. */
  response_format?: 'mp3' | 'opus' | 'aac' | 'flac' | 'wav' | 'pcm' | null;
  speed?: number | null;
  stream_format?: 'sse' | 'audio' | null;
  /** Requests with the same seed give the same audio. */
  seed?: number | null;
  /** Sample rate in Hz; default: the model's. */
  sample_rate?: number | null;
  /** Another name for `stream_format: 'audio'`. */
  stream?: boolean | null;
  /** Accepted and ignored: no model uses it. */
  instructions?: string | null;
}

/** A recording: a File or Blob, a Response, bytes, or a stream of bytes such as that of a file in Node. */
export type Uploadable = Blob | Response | Uint8Array | ArrayBuffer | AsyncIterable<Uint8Array>;

export type AudioResponseFormat = 'json' | 'text' | 'srt' | 'verbose_json' | 'vtt';

export interface TranscriptionCreateParamsBase {
  file: Uploadable;
  model?: string | null;
  language?: string;
  prompt?: string;
  response_format?: AudioResponseFormat;
  temperature?: number;
  timestamp_granularities?: ('word' | 'segment')[];
  include?: 'logprobs'[];
  /** Whether audio without speech is skipped; default true. */
  vad_filter?: boolean | null;
  chunking_strategy?: 'auto' | { type: 'server_vad'; prefix_padding_ms?: number; silence_duration_ms?: number; threshold?: number } | null;
  stream?: boolean | null;
}
export interface TranscriptionCreateParamsNonStreaming<
  Format extends AudioResponseFormat | undefined = AudioResponseFormat | undefined,
> extends Omit<TranscriptionCreateParamsBase, 'response_format'> {
  response_format?: Format;
  stream?: false | null;
}
export interface TranscriptionCreateParamsStreaming extends TranscriptionCreateParamsBase {
  stream: true;
}

export interface TokenLogprob {
  token: string;
  bytes: number[];
  logprob: number;
}
export interface Transcription {
  text: string;
  logprobs?: TokenLogprob[];
  usage: { type: 'duration'; seconds: number };
}
export interface TranscriptionSegment {
  id: number;
  seek: number;
  start: number;
  end: number;
  text: string;
  tokens: number[];
  temperature: number;
  avg_logprob: number;
  compression_ratio: number;
  no_speech_prob: number;
}
export interface TranscriptionVerbose {
  task: 'transcribe' | 'translate';
  language: string;
  duration: number;
  text: string;
  /** Detected language, and (`language_probability`) its probability, if the request named none. */
  detected_language?: string;
  language_probability?: number;
  segments?: TranscriptionSegment[];
  words?: { word: string; start: number; end: number }[];
  usage: { type: 'duration'; seconds: number };
}
export type TranscriptionStreamEvent =
  | { type: 'transcript.text.delta'; delta: string; logprobs?: TokenLogprob[] }
  | { type: 'transcript.text.segment'; id: string; start: number; end: number; text: string }
  | {
      type: 'transcript.text.done';
      text: string;
      logprobs?: TokenLogprob[];
      usage: {
        type: 'tokens';
        input_tokens: number;
        input_token_details: { text_tokens: number; audio_tokens: number };
        output_tokens: number;
        total_tokens: number;
      };
    };

/** Type of a transcription in this format. */
export type TranscriptionOf<Format extends AudioResponseFormat | undefined> = Format extends 'verbose_json'
  ? TranscriptionVerbose
  : Format extends 'text' | 'srt' | 'vtt'
    ? string
    : Transcription;

/** The part of a Web Worker that is used, so that no particular typings of it are needed. */
export interface WorkerLike {
  postMessage(message: unknown): void;
  terminate(): void;
}

/** Progress of loading one model. */
export interface LoadProgress {
  readonly task: 'chat' | 'speech' | 'transcription';
  readonly state: 'fetching' | 'loading' | 'ready';
  /** Bytes fetched so far; `total` is the size, if it is known. Only while fetching. */
  readonly done?: number;
  readonly total?: number;
}

export interface LoadOptions {
  /**
   * The chat model. In Node: whatever `parley pull --help` lists (a Hugging Face id `owner/name`, a folder, a GGUF file, a recommended model's id). In a page: a Hugging
   * Face id, or the https address of a GGUF file or of a folder with a checkpoint. Absent = none; likewise for `speech` and `transcription`.
   */
  readonly chat?: string;
  readonly speech?: string;
  readonly transcription?: string;
  /** Engine settings by their names in engine/config.ts, such as `contextLength`, `maxRunningRequests`, `kvCacheDtype`, `adapter`. */
  readonly engine?: Readonly<Record<string, unknown>>;
  readonly onProgress?: (progress: LoadProgress) => void;
  /** Receives log lines; what it throws is ignored. */
  readonly log?: (line: string) => void;
  readonly signal?: AbortSignal;
  /** In a page: starts a worker that runs `parley/worker`; default: the file beside this one. Called at least once per model. */
  readonly worker?: () => WorkerLike;
}

export interface ModelCard {
  readonly id: string;
  readonly task: 'chat' | 'speech' | 'transcription';
  /** Context length of a chat model, in tokens. */
  readonly contextLength?: number;
  /** Names of a speech model's voices. */
  readonly voices?: readonly string[];
}

/** Models in this process or page, with the calls of the OpenAI client. */
export interface Parley {
  readonly chat: {
    readonly completions: {
      create(body: ChatCompletionCreateParamsNonStreaming, options?: RequestOptions): Promise<ChatCompletion>;
      create(body: ChatCompletionCreateParamsStreaming, options?: RequestOptions): Promise<Stream<ChatCompletionChunk>>;
      create(body: ChatCompletionCreateParamsBase, options?: RequestOptions): Promise<Stream<ChatCompletionChunk> | ChatCompletion>;
    };
  };
  readonly audio: {
    readonly speech: {
      /** Resolves with a Response whose body is the audio. */
      create(body: SpeechCreateParams, options?: RequestOptions): Promise<Response>;
    };
    readonly transcriptions: {
      create<Format extends AudioResponseFormat | undefined = undefined>(
        body: TranscriptionCreateParamsNonStreaming<Format>,
        options?: RequestOptions,
      ): Promise<TranscriptionOf<Format>>;
      create(body: TranscriptionCreateParamsStreaming, options?: RequestOptions): Promise<Stream<TranscriptionStreamEvent>>;
    };
  };
  readonly models: readonly ModelCard[];
  /** Aborts running calls and releases the device. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ParleyConstructor {
  /** Loads models; rejects with an APIError that names the model and the reason. */
  load(options: LoadOptions): Promise<Parley>;
}
