/**
 * Edits of a stored conversation, as functions of its state: two tabs that edit one conversation apply theirs to the stored state, one
 * after the other.
 */
import type { ConversationData, MessageData, MessageStatus } from './conversation-data.ts';
import { titleOf } from './sampling.ts';

export type Edit = (record: ConversationData) => ConversationData;

/** Combines edits into one, applied in order. */
export const chain =
  (...edits: readonly Edit[]): Edit =>
  (record) =>
    edits.reduce((edited, edit) => edit(edited), record);

/**
 * Appends messages, and sets the title if there is none. Restores a conversation that another tab has deleted, so that nothing written is
 * lost.
 */
export const append =
  (...messages: readonly MessageData[]): Edit =>
  ({ removed: _, ...record }) => {
    const title = record.title || titleOf(messages[0]?.text ?? '');
    return { ...record, title, messages: [...record.messages, ...messages] };
  };

/** Inserts an answer right after its question, whatever other tabs have appended since. */
export const answerTo =
  (questionId: string, answer: MessageData): Edit =>
  (record) => {
    const at = record.messages.findIndex(({ id }) => id === questionId);
    const messages = [...record.messages];
    messages.splice(at < 0 ? messages.length : at + 1, 0, answer);
    return { ...record, messages };
  };

/** Replaces a message's former state; a message that was taken out stays out. */
export const update =
  (message: MessageData): Edit =>
  (record) => ({ ...record, messages: record.messages.map((other) => (other.id === message.id ? message : other)) });

/** Whether an answer with this status must have a writer. */
export const isUnfinished = (status: MessageStatus): boolean => status === 'waiting' || status === 'writing';

/** Ends an answer that no tab writes any more; one that has ended stays as it is. */
export const endOf =
  (id: string): Edit =>
  (record) => {
    const found = record.messages.find((message) => message.id === id);
    return found && isUnfinished(found.status) ? update({ ...found, status: 'stopped' })(record) : record;
  };

/** Takes out these messages only: what another tab has added meanwhile stays. */
export const takeOut =
  (...ids: readonly string[]): Edit =>
  (record) => ({ ...record, messages: record.messages.filter(({ id }) => !ids.includes(id)) });

/** Marks a conversation as deleted at a time (ms), or takes the mark away. */
export const mark =
  (removed: number | undefined): Edit =>
  ({ removed: _, ...record }) =>
    removed === undefined ? record : { ...record, removed };

/** Whether a record is as this version of the page stores it. Another version, newer or older, may have stored it. */
export const isReadable = ({ messages }: ConversationData): boolean =>
  Array.isArray(messages) &&
  messages.every(({ role, text }: MessageData) => (role === 'user' || role === 'assistant') && typeof text === 'string');
