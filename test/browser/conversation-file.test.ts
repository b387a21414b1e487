/** Conversations that come back from a file, which somebody may have edited. Without a browser. */
import { describe, expect, test } from 'vitest';
import type { ConversationData } from '../../web/src/chat/conversation-data.ts';
import { exportFile, readExportFile } from '../../web/src/chat/conversation-file.ts';

const stats = { promptTokens: 9, cachedTokens: 0, completionTokens: 3, firstTokenMs: 20, rate: 30, reason: 'stop' } as const;
const whole: ConversationData = {
  id: 'a',
  title: 'Paris',
  created: 1,
  updated: 2,
  system: 'Be brief.',
  messages: [
    { id: 'b', role: 'user', text: 'Where?', status: 'done' },
    { id: 'c', role: 'assistant', text: 'Paris.', thoughts: 'Hm.', status: 'done', stats },
    { id: 'd', role: 'assistant', text: '', status: 'failed', failure: { code: 'busy', message: 'gone', remedies: ['retry'] } },
  ],
};
const fileWith = (conversations: unknown): string => JSON.stringify({ format: 'parley-conversations', version: 1, conversations });

describe('a file of conversations', () => {
  test('brings back what was written', () => {
    expect(readExportFile(exportFile([whole, { ...whole, title: '' }]))).toEqual([whole, { ...whole, title: '' }]);
  });

  test.each([
    ['no JSON', '{', /is not JSON/],
    ['null', 'null', /no export of conversations/],
    ['another document', '{"conversations":[]}', /no export of conversations/],
    [
      'one of a later page',
      '{"format":"parley-conversations","version":2,"conversations":[]}',
      /another version of this page: 2 instead of 1/,
    ],
    ['nothing where a conversation should be', fileWith([whole, null]), /conversation 2 has no messages/],
    ['messages that are none', fileWith([{ ...whole, messages: 'Hello' }]), /conversation 1 has no messages/],
    ['a message without text', fileWith([{ messages: [whole.messages[0], { role: 'user' }] }]), /message 2 of conversation 1 has no text/],
    [
      'another role',
      fileWith([{ messages: [{ role: 'tool', text: 'x' }] }]),
      /message 1 of conversation 1 is neither a question nor an answer/,
    ],
  ])('that is %s is refused in words, whole', (_, text, words) => {
    expect(() => readExportFile(text)).toThrow(words);
  });

  test('lacks what only describes an answer where it is not as the page writes it', () => {
    const [question, answer] = whole.messages;
    const edited = [
      { role: 'user', text: 'Where?', status: 'odd', more: 1 },
      { ...answer, thoughts: 7, stats: { ...stats, rate: 'fast' }, failure: 'none' },
      { ...answer, stats: { ...stats, reason: 'constructor' } },
    ];
    const [read] = readExportFile(fileWith([{ title: 3, messages: edited }]));
    const { stats: _, thoughts: __, ...bare } = answer!;
    expect(read).toMatchObject({ title: '', system: '' });
    expect(read!.messages).toEqual([{ ...question, id: '' }, bare, { ...bare, thoughts: 'Hm.' }]);
  });
});
