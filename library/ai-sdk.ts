/** `parley/ai-sdk`: the models of a Parley for the Vercel AI SDK. */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  SharedV4Warning,
  SpeechModelV4,
  TranscriptionModelV4,
} from '@ai-sdk/provider';
import { toRequest } from './ai-prompt.ts';
import { toolParts } from './ai-tool-parts.ts';
import type { ChatCompletion, ChatCompletionChunk, ChatFinishReason, Parley } from './types.ts';

/** A provider for the AI SDK. Model ids are optional, since there is one model per task. */
export interface ParleyProvider {
  (modelId?: string): LanguageModelV4;
  readonly specificationVersion: 'v4';
  languageModel(modelId?: string): LanguageModelV4;
  speechModel(modelId?: string): SpeechModelV4;
  transcriptionModel(modelId?: string): TranscriptionModelV4;
}

/** The part of a Parley that the provider uses. */
export type ParleyCalls = Pick<Parley, 'chat' | 'audio' | 'models'>;

/** Makes a provider of the models of `parley`. */
export function createParley(parley: ParleyCalls): ParleyProvider {
  const idOf = (task: 'chat' | 'speech' | 'transcription', id: string | undefined): string =>
    id ?? parley.models.find((model) => model.task === task)?.id ?? task;
  const languageModel = (id?: string): LanguageModelV4 => languageModelOf(parley, idOf('chat', id));
  return Object.assign(languageModel.bind(undefined), {
    specificationVersion: 'v4' as const,
    languageModel,
    speechModel: (id?: string) => speechModelOf(parley, idOf('speech', id)),
    transcriptionModel: (id?: string) => transcriptionModelOf(parley, idOf('transcription', id)),
  });
}

const PROVIDER = 'parley';

function languageModelOf(parley: ParleyCalls, modelId: string): LanguageModelV4 {
  const { create } = parley.chat.completions;
  return {
    specificationVersion: 'v4',
    provider: `${PROVIDER}.chat`,
    modelId,
    supportedUrls: {},
    async doGenerate(call) {
      const { body, warnings } = toRequest(call);
      const answer = await create({ ...body, model: modelId, stream: false }, signalOf(call));
      const { finish_reason: reason, message } = answer.choices[0]!;
      const content: LanguageModelV4Content[] = [];
      if (message.reasoning_content) content.push({ type: 'reasoning', text: message.reasoning_content });
      if (message.content) content.push({ type: 'text', text: message.content });
      for (const { id, function: called } of message.tool_calls ?? [])
        content.push({ type: 'tool-call', toolCallId: id, toolName: called.name, input: called.arguments });
      return {
        content,
        finishReason: finishOf(reason),
        usage: usageOf(answer.usage),
        warnings,
        request: { body },
        response: metadataOf(answer),
      };
    },
    async doStream(call) {
      const { body, warnings } = toRequest(call);
      const request = { ...body, model: modelId, stream: true, stream_options: { include_usage: true } } as const;
      const chunks = await create(request, signalOf(call));
      const parts = streamParts(chunks, warnings);
      const stream = new ReadableStream<LanguageModelV4StreamPart>({
        async pull(controller) {
          const { value, done } = await parts.next();
          if (done) controller.close();
          else controller.enqueue(value);
        },
        async cancel() {
          chunks.controller.abort();
          await parts.return(undefined);
        },
      });
      return { stream, request: { body: request } };
    },
  };
}

const signalOf = ({ abortSignal }: Pick<LanguageModelV4CallOptions, 'abortSignal'>) => (abortSignal ? { signal: abortSignal } : {});

/** Converts chunks to the AI SDK's stream parts, in which text and reasoning have a start and an end each. */
async function* streamParts(
  chunks: AsyncIterable<ChatCompletionChunk>,
  warnings: SharedV4Warning[],
): AsyncGenerator<LanguageModelV4StreamPart> {
  yield { type: 'stream-start', warnings };
  const tools = toolParts();
  let open: 'text' | 'reasoning' | undefined;
  let reason: ChatFinishReason | undefined;
  let usage: ChatCompletionChunk['usage'];
  let isFirst = true;
  const switchTo = function* (kind: typeof open): Generator<LanguageModelV4StreamPart> {
    if (open === kind) return;
    if (open) yield { type: `${open}-end`, id: open };
    if (kind) yield { type: `${kind}-start`, id: kind };
    open = kind;
  };
  try {
    for await (const chunk of chunks) {
      if (isFirst) yield { type: 'response-metadata', ...metadataOf(chunk) };
      isFirst = false;
      usage = chunk.usage ?? usage;
      const [choice] = chunk.choices;
      if (!choice) continue;
      const { content, reasoning_content: reasoning, tool_calls: calls } = choice.delta;
      if (reasoning) {
        yield* switchTo('reasoning');
        yield { type: 'reasoning-delta', id: 'reasoning', delta: reasoning };
      }
      if (content) {
        yield* switchTo('text');
        yield { type: 'text-delta', id: 'text', delta: content };
      }
      if (calls) {
        yield* switchTo(undefined);
        yield* tools.take(calls);
      }
      reason = choice.finish_reason ?? reason;
    }
  } catch (error) {
    yield { type: 'error', error };
  }
  yield* switchTo(undefined);
  yield* tools.end();
  yield { type: 'finish', finishReason: finishOf(reason), usage: usageOf(usage ?? undefined) };
}

const metadataOf = ({ id, created, model }: ChatCompletion | ChatCompletionChunk) => ({
  id,
  modelId: model,
  timestamp: new Date(created * 1000),
});

const UNIFIED = { stop: 'stop', length: 'length', tool_calls: 'tool-calls', content_filter: 'content-filter' } as const;

/** An answer without an end was broken off. */
const finishOf = (reason: ChatFinishReason | undefined): LanguageModelV4FinishReason => ({
  unified: reason === undefined ? 'error' : UNIFIED[reason],
  raw: reason,
});

function usageOf(usage: ChatCompletion['usage'] | undefined): LanguageModelV4Usage {
  const cached = usage?.prompt_tokens_details.cached_tokens;
  const reasoning = usage?.completion_tokens_details.reasoning_tokens;
  return {
    inputTokens: { total: usage?.prompt_tokens, noCache: usage && usage.prompt_tokens - cached!, cacheRead: cached, cacheWrite: undefined },
    outputTokens: { total: usage?.completion_tokens, text: usage && usage.completion_tokens - reasoning!, reasoning },
  };
}

function speechModelOf(parley: ParleyCalls, modelId: string): SpeechModelV4 {
  return {
    specificationVersion: 'v4',
    provider: `${PROVIDER}.speech`,
    modelId,
    async doGenerate({ text, voice, outputFormat, instructions, speed, language, abortSignal, providerOptions }) {
      const warnings: SharedV4Warning[] = [];
      for (const [feature, value] of Object.entries({ instructions, language }))
        if (value !== undefined) warnings.push({ type: 'unsupported', feature });
      const [model] = parley.models.filter(({ task }) => task === 'speech');
      const body = {
        model: modelId,
        input: text,
        voice: voice ?? model?.voices?.[0] ?? '',
        ...(outputFormat !== undefined && { response_format: outputFormat as 'mp3' }),
        ...(speed !== undefined && { speed }),
        ...providerOptions?.[PROVIDER],
      };
      const answer = await parley.audio.speech.create(body, signalOf(abortSignal ? { abortSignal } : {}));
      const audio = new Uint8Array(await answer.arrayBuffer());
      return {
        audio,
        warnings,
        request: { body },
        response: { timestamp: new Date(), modelId, headers: Object.fromEntries(answer.headers) },
      };
    },
  };
}

function transcriptionModelOf(parley: ParleyCalls, modelId: string): TranscriptionModelV4 {
  return {
    specificationVersion: 'v4',
    provider: `${PROVIDER}.transcription`,
    modelId,
    async doGenerate({ audio, mediaType, timestampGranularities, abortSignal, providerOptions }) {
      const bytes =
        typeof audio === 'string' ? Uint8Array.from(atob(audio), (character) => character.charCodeAt(0)) : new Uint8Array(audio);
      const body = {
        file: new Blob([bytes], { type: mediaType }),
        model: modelId,
        response_format: 'verbose_json' as const,
        ...(timestampGranularities && { timestamp_granularities: timestampGranularities }),
        ...providerOptions?.[PROVIDER],
      };
      const heard = await parley.audio.transcriptions.create(body, signalOf(abortSignal ? { abortSignal } : {}));
      const timed = ({ start, end }: { readonly start: number; readonly end: number }) => ({ startSecond: start, endSecond: end });
      return {
        text: heard.text,
        segments: (heard.segments ?? []).map((segment) => ({ text: segment.text, ...timed(segment) })),
        ...(heard.words && { words: heard.words.map((word) => ({ text: word.word, ...timed(word) })) }),
        language: heard.language,
        durationInSeconds: heard.duration,
        warnings: [],
        response: { timestamp: new Date(), modelId },
      };
    },
  };
}
