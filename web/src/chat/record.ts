/** Changes of a stored conversation, as functions: two tabs that both change one apply theirs to what is stored, one after the other. */
import type { ConversationData, MessageData, MessageStatus } from './conversation-data.ts';
import { titleOf } from './sampling.ts';

export type Edit = (record: ConversationData) => ConversationData;

/** Edits as one, the first first. */
export const chain =
  (...edits: readonly Edit[]): Edit =>
  (record) =>
    edits.reduce((edited, edit) => edit(edited), record);

/** Adds messages at the end, and a title where there is none. A conversation that another tab has deleted is one again: nothing written is lost. */
export const append =
  (...messages: readonly MessageData[]): Edit =>
  ({ removed: _, ...record }) => {
    const title = record.title || titleOf(messages[0]?.text ?? '');
    return { ...record, title, messages: [...record.messages, ...messages] };
  };

/** Adds an answer right after its question, whatever other tabs have added behind it. */
export const answerTo =
  (questionId: string, answer: MessageData): Edit =>
  (record) => {
    const at = record.messages.findIndex(({ id }) => id === questionId);
    const messages = [...record.messages];
    messages.splice(at < 0 ? messages.length : at + 1, 0, answer);
    return { ...record, messages };
  };

/** Puts a message in the place of its former state; one that has been taken out stays out. */
export const update =
  (message: MessageData): Edit =>
  (record) => ({ ...record, messages: record.messages.map((other) => (other.id === message.id ? message : other)) });

/** Whether somebody has to be writing it. */
export const isUnfinished = (status: MessageStatus): boolean => status === 'waiting' || status === 'writing';

/** Ends an answer that nobody writes any more; one that has ended stays as it is. */
export const endOf =
  (id: string): Edit =>
  (record) => {
    const found = record.messages.find((message) => message.id === id);
    return found && isUnfinished(found.status) ? update({ ...found, status: 'stopped' })(record) : record;
  };

/** Takes out messages, and only those: what another tab added meanwhile stays. */
export const takeOut =
  (...ids: readonly string[]): Edit =>
  (record) => ({ ...record, messages: record.messages.filter(({ id }) => !ids.includes(id)) });

/** Marks a conversation as deleted at a time (ms), or takes the mark away. */
export const mark =
  (removed: number | undefined): Edit =>
  ({ removed: _, ...record }) =>
    removed === undefined ? record : { ...record, removed };
