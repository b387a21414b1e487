/** How an answer ended, in words for people. Pure, so that it is tested as a table. */
import { formatCount } from '../util.ts';
import type { AnswerStats, MessageStatus } from './conversation-data.ts';

const REASONS: Readonly<Record<NonNullable<AnswerStats['reason']>, string>> = {
  stop: 'by itself',
  length: 'at the length limit',
  tool_calls: 'with a tool call',
  content_filter: 'by a filter of the server',
};

/** Whether a value from outside is one that has words here. */
export const isReason = (value: unknown): boolean => typeof value === 'string' && Object.hasOwn(REASONS, value);

/** How an answer ended; undefined where that is not known. */
export function endWords(status: MessageStatus, { reason }: Pick<AnswerStats, 'reason'>): string | undefined {
  if (status === 'stopped') return 'by you';
  if (status === 'failed') return 'by an error';
  return reason && REASONS[reason];
}

/** Said of an answer that is not whole; `context` is the model's, where it is known. */
export function cutWords({ reason, promptTokens, completionTokens }: AnswerStats, context = Infinity): string | undefined {
  if (reason !== 'length') return undefined;
  if (promptTokens + completionTokens >= context) return 'Cut off here: the context is full. A new conversation has room.';
  return `Cut off after ${formatCount(completionTokens)} tokens, the longest answer that is set`;
}
