/** Plain data of conversations: what is stored and exported. */
import type { FinishReason } from '../../../engine/api.ts';
import type { Failure } from '../failure.ts';

export type MessageStatus = 'waiting' | 'writing' | 'done' | 'stopped' | 'failed';

/** What is measured about an answer. */
export interface AnswerStats {
  /** 0 = not told: servers count at the end, and this answer had none. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  /** ms from sending to the first text. */
  readonly firstTokenMs: number;
  /** Tokens a second after the first. */
  readonly rate: number;
  /** Absent where it was broken off. */
  readonly reason?: FinishReason;
}

/** Plain data of a message: what is stored and exported. */
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
  /** When it was deleted (ms since 1970); it can be brought back for a while. */
  readonly removed?: number;
}
