/** Words for how an answer ended. Pure functions, so that tests can cover them as a table. */
import { formatCount } from '../util.ts';
import type { AnswerStats, MessageStatus } from './conversation-data.ts';

const REASONS: Readonly<Record<NonNullable<AnswerStats['reason']>, string>> = {
  stop: 'by itself',
  length: 'at the length limit',
  tool_calls: 'with a tool call',
  content_filter: 'by a filter of the server',
};

/** Whether a value from outside the page is a finish reason that has words here. */
export const isReason = (value: unknown): boolean => typeof value === 'string' && Object.hasOwn(REASONS, value);

/** Says how an answer ended; undefined where that is not known. */
export function endWords(status: MessageStatus, { reason }: Pick<AnswerStats, 'reason'>): string | undefined {
  if (status === 'stopped') return 'by you';
  if (status === 'failed') return 'by an error';
  return reason && REASONS[reason];
}

/** Explains why an answer is cut off; undefined for one that is not. `context` is the model's context length in tokens, where known. */
export function cutWords({ reason, promptTokens, completionTokens }: AnswerStats, context = Infinity): string | undefined {
  if (reason !== 'length') return undefined;
  if (promptTokens + completionTokens >= context) return 'Cut off here: the context is full. A new conversation has room.';
  return `Cut off after ${formatCount(completionTokens)} tokens, the longest answer that is set`;
}

/** Says that an answer has no text, and why where that is known; undefined where `cutWords` says it. */
export function emptyWords({ reason }: Pick<AnswerStats, 'reason'>): string | undefined {
  if (reason === 'length') return undefined;
  if (reason === 'tool_calls') return 'No text: the model called a tool, and this page has none.';
  return reason === 'content_filter' ? 'No text: a filter of the server held it back.' : 'The model answered without any text.';
}
