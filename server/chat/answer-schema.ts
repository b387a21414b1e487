/** Schemas of what chat, text completions and fill in the middle answer: whole bodies, and chunks of streams. */
import { z } from 'zod';
import { count, integer, named, unixTime } from '../http/answers.ts';
import type { Sent } from '../http/answers.ts';

const envelope = {
  id: z.string().describe('The same in all chunks of an answer'),
  created: unixTime,
  model: z.string().describe('Id of the model, or of its LoRA adapter'),
  system_fingerprint: z.string().describe('While it is the same, equal requests with a seed get equal answers'),
};

const finishReason = z
  .enum(['stop', 'length', 'tool_calls', 'content_filter'])
  .meta({ id: 'FinishReason', description: 'Why a choice ended' });
const stopReason = z.union([z.string(), integer]).nullable().describe('The stop sequence or stop token that ended the choice');

const usageSchema = named('CompletionUsage', 'Tokens of a request and of all its choices', {
  prompt_tokens: count,
  completion_tokens: count.describe('Reasoning included'),
  total_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count.describe('Found in the prefix cache'), audio_tokens: count }),
  completion_tokens_details: z.object({
    reasoning_tokens: count,
    audio_tokens: count,
    accepted_prediction_tokens: count,
    rejected_prediction_tokens: count,
  }),
});

/** `usage` of a chunk. */
const chunkUsage = usageSchema.nullable().optional().describe('There if the request asked for it; null in the chunks before the last');

const tokenLogprob = {
  token: z.string(),
  logprob: z.number().describe('-9999 stands for minus infinity'),
  bytes: z.array(integer).describe('UTF-8 of the token, which may be a part of a character'),
};
const tokenLogprobSchema = named('ChatCompletionTokenLogprob', 'A token of an answer, and the likeliest in its place', {
  ...tokenLogprob,
  top_logprobs: z.array(named('ChatCompletionTopLogprob', 'A token that could stand in its place', tokenLogprob)),
});
const logprobsSchema = named('ChatCompletionLogprobs', 'Log-probabilities, if the request asked for them', {
  content: z.array(tokenLogprobSchema),
  refusal: z.array(tokenLogprobSchema).nullable().describe('Always null'),
}).nullable();

const callSchema = named('ChatCompletionFunctionCall', 'A function to call', {
  name: z.string(),
  arguments: z.string().describe('Text of a JSON object'),
});
const callPieceSchema = named('ChatCompletionFunctionCallPiece', 'A piece of a call; only the first has the name', {
  name: z.string().optional(),
  arguments: z.string(),
});
const reasoning = {
  reasoning_content: z.string().optional().describe("A reasoning model's thoughts"),
  reasoning: z.string().optional().describe('The same under another name, if the server was started so'),
};

const messageSchema = named('ChatCompletionMessage', 'An answer to a conversation', {
  role: z.literal('assistant'),
  content: z.string().nullable().describe('Null if there is nothing but calls'),
  refusal: z.string().nullable().describe('Always null'),
  ...reasoning,
  tool_calls: z
    .array(
      named('ChatCompletionMessageToolCall', 'A call of a tool', { id: z.string(), type: z.literal('function'), function: callSchema }),
    )
    .optional()
    .describe('Absent if there are none'),
  function_call: callSchema.optional(),
});

const deltaSchema = named('ChatCompletionDelta', 'A piece of an answer', {
  role: z.literal('assistant').optional().describe('In the first chunk of a choice'),
  content: z.string().optional(),
  ...reasoning,
  tool_calls: z
    .array(
      named('ChatCompletionToolCallPiece', 'A piece of a call; only the first has id, type and name', {
        index: count.describe('Number of the call'),
        id: z.string().optional(),
        type: z.literal('function').optional(),
        function: callPieceSchema,
      }),
    )
    .optional(),
  function_call: callPieceSchema.optional(),
});

export const chatCompletionSchema = named('ChatCompletion', 'An answer as a whole', {
  ...envelope,
  object: z.literal('chat.completion'),
  choices: z.array(
    named('ChatCompletionChoice', 'One of the answers to a conversation', {
      index: count,
      message: messageSchema,
      logprobs: logprobsSchema,
      finish_reason: finishReason,
      stop_reason: stopReason,
    }),
  ),
  usage: usageSchema,
});
export type ChatCompletion = Sent<typeof chatCompletionSchema>;

const STREAM = 'An event of a stream. After the last comes `data: [DONE]`. A failure on the way is an event with an Error instead';

export const chatChunkSchema = named('ChatCompletionChunk', STREAM, {
  ...envelope,
  object: z.literal('chat.completion.chunk'),
  choices: z
    .array(
      named('ChatCompletionChunkChoice', 'A piece of one of the answers', {
        index: count,
        delta: deltaSchema,
        logprobs: logprobsSchema,
        finish_reason: finishReason.nullable().describe('Null in the chunks before the last of the choice'),
        stop_reason: stopReason.optional(),
      }),
    )
    .describe('Empty in the chunk that has the whole `usage`'),
  usage: chunkUsage,
});
export type ChatChunk = Sent<typeof chatChunkSchema>;

const textLogprobsSchema = named('CompletionLogprobs', 'Log-probabilities of tokens, in one list for each fact', {
  tokens: z.array(z.string()),
  token_logprobs: z.array(z.number().nullable()).describe('Null for the first token of a prompt; -9999 stands for minus infinity'),
  top_logprobs: z.array(z.record(z.string(), z.number()).nullable()).describe('Those of the likeliest tokens and of the chosen one'),
  text_offset: z.array(count).describe('Where each token begins in the text, in UTF-16 code units'),
});
export type TextLogprobs = Sent<typeof textLogprobsSchema>;

const textChoice = { index: count, text: z.string(), logprobs: textLogprobsSchema.nullable() };

export const textCompletionSchema = named('Completion', 'A continuation as a whole', {
  ...envelope,
  object: z.literal('text_completion'),
  choices: z.array(
    named('CompletionChoice', 'One of the continuations', { ...textChoice, finish_reason: finishReason, stop_reason: stopReason }),
  ),
  usage: usageSchema,
});
export type TextCompletion = Sent<typeof textCompletionSchema>;

export const textChunkSchema = named('CompletionChunk', STREAM, {
  ...envelope,
  object: z.literal('text_completion'),
  choices: z
    .array(
      named('CompletionChunkChoice', 'A piece of one of the continuations', {
        ...textChoice,
        finish_reason: finishReason.nullable().describe('Null in the chunks before the last of the choice'),
        stop_reason: stopReason.optional(),
      }),
    )
    .describe('Empty in the chunk that has the whole `usage`'),
  usage: chunkUsage,
});
export type TextChunk = Sent<typeof textChunkSchema>;

export type UsageAnswer = Sent<typeof usageSchema>;
