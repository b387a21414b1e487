/** Export and import of conversations as a JSON file. */
import type { Json } from '../../../engine/util/json.ts';
import { failure } from '../failure.ts';
import type { Failure } from '../failure.ts';
import { fieldsOf } from '../util.ts';
import { isReason } from './answer-words.ts';
import type { AnswerStats, ConversationData, MessageData, MessageStatus } from './conversation-data.ts';

const FORMAT = 'parley-conversations';
const VERSION = 1;

interface ExportFile {
  readonly format: typeof FORMAT;
  readonly version: typeof VERSION;
  readonly conversations: readonly ConversationData[];
}

/** Returns conversations as a JSON document. */
export function exportFile(conversations: readonly ConversationData[]): string {
  const file: ExportFile = { format: FORMAT, version: VERSION, conversations };
  return JSON.stringify(file, null, 1);
}

/**
 * Reads the conversations of an export file, all or none: it may have been edited, and what is stored is shown at every visit. Throws an
 * Error that tells people what is wrong with it. An answer's statistics and failure are dropped when they are not as this page writes them.
 */
export function readExportFile(text: string): readonly ConversationData[] {
  let file: Json;
  try {
    file = fieldsOf(JSON.parse(text));
  } catch {
    throw new Error('this file is not JSON');
  }
  if (file['format'] !== FORMAT || !Array.isArray(file['conversations'])) throw new Error('this is no export of conversations');
  if (file['version'] !== VERSION)
    throw new Error(`this file is of another version of this page: ${String(file['version'])} instead of ${VERSION}`);
  return file['conversations'].map((found, at) => conversationOf(fieldsOf(found), at + 1));
}

const textOf = (found: unknown): string => (typeof found === 'string' ? found : '');
const isNumber = (found: unknown): found is number => typeof found === 'number' && Number.isFinite(found);

function conversationOf(found: Json, number: number): ConversationData {
  const { messages, created, updated } = found;
  if (!Array.isArray(messages)) throw new Error(`this file is damaged: conversation ${number} has no messages`);
  const now = Date.now();
  return {
    id: textOf(found['id']),
    title: textOf(found['title']),
    created: isNumber(created) ? created : now,
    updated: isNumber(updated) ? updated : now,
    system: textOf(found['system']),
    messages: messages.map((message, at) => messageOf(fieldsOf(message), `message ${at + 1} of conversation ${number}`)),
  };
}

const STATUSES: readonly MessageStatus[] = ['waiting', 'writing', 'done', 'stopped', 'failed'];

function messageOf(found: Json, which: string): MessageData {
  const { role, text, thoughts } = found;
  if (role !== 'user' && role !== 'assistant') throw new Error(`this file is damaged: ${which} is neither a question nor an answer`);
  if (typeof text !== 'string') throw new Error(`this file is damaged: ${which} has no text`);
  const stats = statsOf(fieldsOf(found['stats']));
  const why = failureOf(fieldsOf(found['failure']));
  return {
    id: textOf(found['id']),
    role,
    text,
    ...(typeof thoughts === 'string' && { thoughts }),
    status: STATUSES.find((status) => status === found['status']) ?? 'done',
    ...(stats && { stats }),
    ...(why && { failure: why }),
  };
}

function statsOf(found: Json): AnswerStats | undefined {
  const { promptTokens, cachedTokens, completionTokens, firstTokenMs, rate, reason } = found;
  const numbers = [promptTokens, cachedTokens, completionTokens, firstTokenMs, rate];
  return numbers.every(isNumber) && (reason === undefined || isReason(reason)) ? (found as unknown as AnswerStats) : undefined;
}

function failureOf({ code, message }: Json): Failure | undefined {
  return typeof code === 'string' && typeof message === 'string' ? failure(code, message) : undefined;
}
