/** Converts streamed tool calls to the AI SDK's stream parts. */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import type { ChatCompletionChunk } from './types.ts';

type Pieces = NonNullable<ChatCompletionChunk['choices'][number]['delta']['tool_calls']>;

/** Returns functions that take the pieces of tool calls in order, and end with a part for each complete call. */
export function toolParts() {
  const calls: { readonly id: string; readonly toolName: string; input: string }[] = [];
  return {
    *take(pieces: Pieces): Generator<LanguageModelV4StreamPart> {
      for (const { index, id, function: called } of pieces) {
        let call = calls[index];
        if (!call) {
          call = calls[index] = { id: id ?? `call_${index}`, toolName: called?.name ?? '', input: '' };
          yield { type: 'tool-input-start', id: call.id, toolName: call.toolName };
        }
        const delta = called?.arguments ?? '';
        call.input += delta;
        if (delta !== '') yield { type: 'tool-input-delta', id: call.id, delta };
      }
    },
    *end(): Generator<LanguageModelV4StreamPart> {
      for (const { id, toolName, input } of calls) {
        yield { type: 'tool-input-end', id };
        yield { type: 'tool-call', toolCallId: id, toolName, input };
      }
    },
  };
}
