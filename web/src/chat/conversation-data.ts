/** Plain data of conversations, as stored and exported. */
import type { FinishReason } from '../../../engine/api.ts';
import type { Failure } from '../failure.ts';

export type MessageStatus = 'waiting' | 'writing' | 'done' | 'stopped' | 'failed';

/** Statistics of an answer. */
export interface AnswerStats {
  /** Tokens of the prompt; 0 = unknown, because servers send counts only at the end of an answer, if at all. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  /** Time from sending to the first text, in ms. */
  readonly firstTokenMs: number;
  /** Tokens per second after the first. */
  readonly rate: number;
  /** Absent if the answer was broken off. */
  readonly reason?: FinishReason;
}

/** Plain data of a message, as stored and exported. */
export interface MessageData {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly text: string;
  /** What a thinking model wrote before its answer. */
  readonly thoughts?: string;
  readonly status: MessageStatus;
  readonly stats?: AnswerStats;
  readonly failure?: Failure;
}

export interface ConversationData {
  readonly id: string;
  readonly title: string;
  readonly created: number;
  readonly updated: number;
  readonly system: string;
  readonly messages: readonly MessageData[];
  /** Time of deletion, in ms since 1970; for a while the conversation can be restored. */
  readonly removed?: number;
}
