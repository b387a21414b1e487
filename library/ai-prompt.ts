/** Converts the AI SDK's prompts to messages of the OpenAI API. */
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4ToolResultOutput,
  SharedV4Warning,
} from '@ai-sdk/provider';
import type { ChatCompletionCreateParamsBase, ChatCompletionMessageParam } from './types.ts';

/** Converts a call of the AI SDK to a request, with warnings about options that are not supported. */
export function toRequest(call: LanguageModelV4CallOptions): {
  readonly body: ChatCompletionCreateParamsBase;
  readonly warnings: SharedV4Warning[];
} {
  const warnings: SharedV4Warning[] = [];
  const functions = (call.tools ?? []).filter((tool): tool is LanguageModelV4FunctionTool => {
    if (tool.type === 'function') return true;
    warnings.push({ type: 'unsupported', feature: `provider-defined tool ${tool.id}` });
    return false;
  });
  const body: Record<string, unknown> = {
    messages: call.prompt.flatMap((message) => toMessages(message)),
    max_completion_tokens: call.maxOutputTokens,
    temperature: call.temperature,
    top_p: call.topP,
    top_k: call.topK,
    presence_penalty: call.presencePenalty,
    frequency_penalty: call.frequencyPenalty,
    stop: call.stopSequences?.length ? call.stopSequences : undefined,
    seed: call.seed,
    response_format: formatOf(call.responseFormat),
    reasoning_effort: call.reasoning === 'provider-default' ? undefined : call.reasoning,
    ...(functions.length > 0 && {
      tools: functions.map((tool) => ({
        type: 'function',
        function: { name: tool.name, description: tool.description, parameters: tool.inputSchema, strict: tool.strict },
      })),
      tool_choice: choiceOf(call.toolChoice),
    }),
    // Parley's own options.
    ...call.providerOptions?.['parley'],
  };
  const given = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
  return { body: given as unknown as ChatCompletionCreateParamsBase, warnings };
}

function formatOf(format: LanguageModelV4CallOptions['responseFormat']): object | undefined {
  if (format?.type !== 'json') return undefined;
  if (!format.schema) return { type: 'json_object' };
  return { type: 'json_schema', json_schema: { name: format.name ?? 'answer', description: format.description, schema: format.schema } };
}

function choiceOf(choice: LanguageModelV4CallOptions['toolChoice']): object | string | undefined {
  return choice?.type === 'tool' ? { type: 'function', function: { name: choice.toolName } } : choice?.type;
}

function toMessages(message: LanguageModelV4Message): ChatCompletionMessageParam[] {
  switch (message.role) {
    case 'system':
      return [{ role: 'system', content: message.content }];
    case 'user':
      return [{ role: 'user', content: message.content.map((part) => ({ type: 'text', text: textOf(part) })) }];
    case 'assistant':
      return [toAssistant(message.content)];
    case 'tool':
      return message.content.flatMap((part) =>
        part.type === 'tool-result' ? [{ role: 'tool', tool_call_id: part.toolCallId, content: resultOf(part.output) }] : [],
      );
  }
}

type AssistantPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number];

function toAssistant(parts: readonly AssistantPart[]): ChatCompletionMessageParam {
  const joined = (type: 'text' | 'reasoning'): string => parts.map((part) => (part.type === type ? part.text : '')).join('');
  const calls = parts.flatMap((part) =>
    part.type === 'tool-call'
      ? [{ id: part.toolCallId, type: 'function' as const, function: { name: part.toolName, arguments: JSON.stringify(part.input) } }]
      : [],
  );
  const [content, reasoning] = [joined('text'), joined('reasoning')];
  return {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

function textOf(part: { readonly type: string; readonly text?: string; readonly mediaType?: string }): string {
  if (part.type === 'text') return part.text ?? '';
  throw new TypeError(`chat models of Parley read text only, got a part of type ${part.mediaType ?? part.type}`);
}

function resultOf(output: LanguageModelV4ToolResultOutput): string {
  if (output.type === 'text' || output.type === 'error-text') return output.value;
  if (output.type === 'execution-denied') return output.reason ?? 'the call was denied';
  return JSON.stringify(output.value);
}
