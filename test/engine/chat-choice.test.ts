/** Stop strings and calls: text ends at them, a call does not. */
import { expect, test } from 'vitest';
import { ChatChoice } from '../../engine/tasks/chat-choice.ts';
import type { ParserOptions } from '../../engine/tasks/chat-choice.ts';
import { callFormOf } from '../../engine/text/call-forms.ts';
import type { Tokenizer } from '../../engine/text/tokenizer.ts';

const TOOLS = { tools: ['weather'] };
const HARMONY = { harmony: { prompt: '<|start|>assistant', separate: true, tools: ['weather'] } };
const CALL = '<tool_call>\n{"name": "weather", "arguments": {"at": "a. b", "n": 1}}\n</tool_call>';
const BARE = '{"name": "weather", "arguments": {"at": "a. b", "n": 1}}';
const MADE = 'weather {"at": "a. b", "n": 1}';

/** What a client gets of an answer, in pieces of so many characters, and the stop string that ended it. */
function read(answer: string, stop: readonly string[], parser: ParserOptions, size: number) {
  const pieces = answer.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
  const decode = (ids: readonly number[]): string => ids.map((id) => pieces[id]!).join('');
  const tokenizer = { decode, tokenId: () => undefined, isSilent: () => false } as unknown as Tokenizer;
  const choice = new ChatChoice(tokenizer, { index: 0, stop, skipSpecialTokens: true, parser, matcher: undefined });
  let [text, reasoning] = ['', ''];
  const calls: string[] = [];
  for (const token of pieces.keys()) {
    const taken = choice.take(token, { silent: false, last: token === pieces.length - 1, logprobs: undefined });
    for (const delta of taken.deltas) {
      text += delta.text;
      reasoning += delta.reasoning ?? '';
      for (const call of delta.toolCalls ?? []) calls[call.call] = 'name' in call ? `${call.name} ` : calls[call.call]! + call.arguments;
    }
    if (taken.stop !== undefined) return { text, reasoning, calls, stop: taken.stop };
  }
  return { text, reasoning, calls, stop: undefined };
}

test.each<[string, string, string[], ParserOptions, object]>([
  ['in the tag and the arguments', CALL, ['\n', '. ', '"n"'], TOOLS, { text: '', calls: [MADE], stop: undefined }],
  ['between two calls', `${CALL}\n${CALL}`, ['\n'], TOOLS, { text: '', calls: [MADE, MADE], stop: undefined }],
  ['behind a call', `${CALL}\nObservation: rain`, ['\nObservation:'], TOOLS, { text: '', calls: [MADE], stop: '\nObservation:' }],
  ['in the text behind a call', `${CALL}\nSo. And`, ['. '], TOOLS, { text: 'So', calls: [MADE], stop: '. ' }],
  ['in the text before a call', `So. And ${CALL}`, ['. '], TOOLS, { text: 'So', calls: [], stop: '. ' }],
  ['that is a closing tag', `${CALL}\n${CALL}`, ['</tool_call>'], TOOLS, { text: '', calls: [MADE], stop: '</tool_call>' }],
  ['that is a closing tag, of what is no call', '<tool_call>{"name": "other"}</tool_call> So', ['</tool_call>'], TOOLS, { text: '<tool_call>{"name": "other"}', calls: [], stop: '</tool_call>' }],
  ['that is an opening tag', `Hm ${CALL}`, ['<tool_call>'], TOOLS, { text: 'Hm ', calls: [], stop: '<tool_call>' }],
  ['where no tools are offered', `Hm ${CALL}`, ['. '], {}, { text: 'Hm <tool_call>\n{"name": "weather", "arguments": {"at": "a', calls: [], stop: '. ' }],
  ['in a call without a closing tag', '[TOOL_CALLS][{"name": "weather", "arguments": {"at": "a. b", "n": 1}}]', ['. '], { ...TOOLS, form: callFormOf('[TOOL_CALLS]', () => false) }, { calls: [MADE], stop: undefined }],
  ['in a header and a call of Harmony', '<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"at": "a. b", "n": 1}<|call|>', ['. ', 'assistant', 'analysis'], HARMONY, { reasoning: 'Hm', calls: [MADE], stop: undefined }],
  ['in the thoughts of Harmony', '<|channel|>analysis<|message|>Hm. So<|end|>', ['. '], HARMONY, { reasoning: 'Hm', calls: [], stop: '. ' }],
  ['in a call without tags', `\n\`\`\`json\n${BARE}\n\`\`\``, ['\n', '. ', '`'], TOOLS, { text: '', calls: [MADE], stop: undefined }],
  ['between two calls without tags', `${BARE}\n${BARE}`, ['\n', '}'], TOOLS, { text: '', calls: [MADE, MADE], stop: undefined }],
  ['in what looks like a call, and is none', '```json\n{"name": "weather", "at": "a. b"}', ['"at"', '\n'], TOOLS, { text: '```json', calls: [], stop: '\n' }],
  ['in a call without tags that has text behind it', `${BARE}\nSo`, ['\n'], TOOLS, { text: BARE, calls: [], stop: '\n' }],
  ['that makes text of what might be a call', '{"name": stop}', ['stop'], TOOLS, { text: '{"name": ', calls: [], stop: 'stop' }],
  ['in a call without tags that is cut', '{"name": "weather", "arguments": {"at": "a. b', ['. '], TOOLS, { text: '{"name": "weather", "arguments": {"at": "a', calls: [], stop: '. ' }],
  ['in text of a model that writes no tags', 'So. And', ['. '], TOOLS, { text: 'So', calls: [], stop: '. ' }],
  ['in thoughts before a call without tags', `Hm. So</think>${BARE}`, ['. '], { ...TOOLS, reasoning: { opened: true } }, { reasoning: 'Hm', calls: [], stop: '. ' }],
])('a stop string %s', (_, answer, stop, parser, expected) => {
  for (const size of [1, 3, 7, 1000]) expect(read(answer, stop, parser, size)).toMatchObject(expected);
}); // prettier-ignore

test('tokens without text, such as the ends that an answer goes on behind, are not decoded again with every one', () => {
  const END = 9;
  let [decoded, text] = [0, ''];
  const decode = (ids: readonly number[]): string => {
    decoded += ids.length;
    return ids.map((id) => (id === END ? '' : `${id} `)).join('');
  };
  const tokenizer = { decode, tokenId: () => undefined, isSilent: (id: number) => id === END } as unknown as Tokenizer;
  const choice = new ChatChoice(tokenizer, { index: 0, stop: [], skipSpecialTokens: true, parser: {}, matcher: undefined });
  const answer = [1, ...Array<number>(1000).fill(END), 2];
  for (const [i, token] of answer.entries()) {
    const { deltas } = choice.take(token, { silent: false, last: i === answer.length - 1, logprobs: undefined });
    for (const delta of deltas) text += delta.text;
  }
  expect(text).toBe('1 2 ');
  expect(decoded).toBeLessThan(20);
});
