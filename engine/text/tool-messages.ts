/** Calls of tools and their results in a conversation, as a model's template takes them. */
import { isObject } from '../util/json.ts';
import type { CallWriting } from './call-forms.ts';
import { mendJson, readJson } from './json-scan.ts';

/** A message whose content is a text and whose calls have parsed arguments. */
export type PlainMessage = Readonly<Record<string, unknown>> & { readonly role: string; readonly content: string };

/** Rewrites what the template of this `source` does not take; `writing` is the form of calls that the model reads in what it said. */
export function fitToolMessages(messages: readonly PlainMessage[], source: string, writing: CallWriting): readonly PlainMessage[] {
  const system = /system role (?:is )?not supported/i.test(source) ? withoutSystem(messages) : messages;
  if (!system.some((message) => message.role === 'tool' || callsOf(message).length > 0)) return system;
  const single = /single tool-calls? at once/i.test(source) ? oneByOne(system) : system;
  const named = wantsShortIds(source) ? single.map(withShortIds) : single;
  if (source.includes('tool_responses') && !/role['"\]]*\s*==\s*['"]tool['"]/.test(source)) return joinResponses(named);
  const written = takesCalls(source) ? named : named.map((message) => withWrittenCalls(message, writing));
  return showsTools(source) && /['"]tool['"]/.test(source) ? written : withoutToolRole(written);
}

/** Whether a template shows the model what tools there are. */
export const showsTools = (source: string): boolean => source.includes('tools');

/**
 * Where it does not, a system message asks for calls in our form, and those that were made must not look otherwise. DeepSeek's distilled models have such
 * templates, with a form of calls that nobody asked them for.
 */
const takesCalls = (source: string): boolean => showsTools(source) && source.includes('tool_calls');

/** Characters of a conversation's arguments that are mended: more of them would fit into no context, and take a second. */
const MENDED_CHARACTERS = 1 << 20;
/** Arguments of a conversation that are found to be no JSON. More calls would fit into no context either, and an exception for each takes seconds. */
const MOST_WRONG = 4096;

/**
 * Reads the calls of a conversation as the template of this `source` takes them. `arguments` arrive as JSON text, and templates want an object, which they
 * print or walk through. What is none, as models write it and as the end of an answer leaves it, stays as it was written where it can be shown, and is `{}`
 * elsewhere: clients send it back with every turn, so that refusing it would end the conversation.
 */
export function callReader(source: string): (call: unknown) => unknown {
  const showsText = !takesCalls(source) || /arguments['"\]]*\s+is\s+(?:not\s+)?string/.test(source);
  let [left, wrong] = [MENDED_CHARACTERS, 0];
  const mend = (text: string): string | undefined => {
    wrong++;
    return (left -= text.length) < 0 ? undefined : mendJson(text);
  };
  const readArguments = (text: string): unknown => (wrong > MOST_WRONG || text.trim() === '' ? undefined : readJson(text, mend));
  return (call) => {
    if (!isObject(call) || !isObject(call['function'])) return call;
    const { arguments: text } = call['function'];
    if (typeof text !== 'string') return call;
    const said = readArguments(text);
    // Clients that take arguments for a value make JSON of them once more; the AI SDK does where it could not read them.
    const written = typeof said === 'string' ? said : text;
    const read = typeof said === 'string' ? readArguments(said) : said;
    const shown = showsText && written.trim() !== '' ? written : {};
    return { ...call, function: { ...call['function'], arguments: isObject(read) ? read : shown } };
  };
}

interface PlainCall {
  readonly id?: unknown;
  readonly function: { readonly name: string; readonly arguments: unknown };
}

function callsOf({ tool_calls: calls }: PlainMessage): readonly PlainCall[] {
  return Array.isArray(calls) ? (calls as PlainCall[]) : [];
}

/** Llama 3's templates refuse several calls in a message: each is a message of its own then, and has its results behind it. */
function oneByOne(messages: readonly PlainMessage[]): PlainMessage[] {
  const out: PlainMessage[][] = [];
  for (let at = 0; at < messages.length;) {
    const message = messages[at++]!;
    const calls = callsOf(message);
    if (calls.length < 2) {
      out.push([message]);
      continue;
    }
    const turns = calls.map((call, i): PlainMessage[] => [{ ...message, content: i === 0 ? message.content : '', tool_calls: [call] }]);
    const byId = new Map(calls.map(({ id }, i) => [id, turns[i]!]));
    // What answers none of them stands behind the last.
    for (; messages[at]?.role === 'tool'; at++) (byId.get(messages[at]!['tool_call_id']) ?? turns.at(-1)!).push(messages[at]!);
    out.push(turns.flat());
  }
  return out.flat();
}

/** Mistral's templates refuse other ids than nine letters and digits. */
const wantsShortIds = (source: string): boolean => /\|\s*length\s*!=\s*9/.test(source);

function withShortIds(message: PlainMessage): PlainMessage {
  const { tool_call_id: id } = message;
  const calls = callsOf(message).map((call) => ({ ...call, id: shortId(call.id) }));
  return { ...message, ...(id !== undefined && { tool_call_id: shortId(id) }), ...(calls.length > 0 && { tool_calls: calls }) };
}

/** The last nine letters and digits: those of an id that a server made are random. */
const shortId = (id: unknown): string =>
  String(id)
    .replaceAll(/[^A-Za-z0-9]/g, '')
    .slice(-9)
    .padStart(9, '0');

/** Gemma 4's first template has results, and the answer to them, in the message that called. */
function joinResponses(messages: readonly PlainMessage[]): PlainMessage[] {
  const out: PlainMessage[] = [];
  for (const message of messages) {
    const last = out.at(-1);
    const responses = (last?.['tool_responses'] ?? []) as readonly unknown[];
    const called = last ? callsOf(last) : [];
    if (last && message.role === 'tool' && called.length > 0) {
      const call = called.find(({ id }) => id === message['tool_call_id']) ?? called[responses.length];
      const response = { name: call?.function.name ?? message['name'] ?? 'unknown', response: objectOrText(message.content) };
      out[out.length - 1] = { ...last, tool_responses: [...responses, response] };
    } else if (last && message.role === 'assistant' && responses.length > 0 && callsOf(message).length === 0) {
      out[out.length - 1] = { ...last, content: message.content };
    } else out.push(message);
  }
  return out;
}

function objectOrText(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : text;
  } catch {
    return text;
  }
}

/** What the model said, where the template would leave its calls out. */
function withWrittenCalls(message: PlainMessage, { begin, call, separator, end }: CallWriting): PlainMessage {
  const calls = callsOf(message);
  if (calls.length === 0) return message;
  const written = calls.map(({ function: { name, arguments: args } }) =>
    call(name).join(typeof args === 'string' ? args : JSON.stringify(args)),
  );
  const { tool_calls: _, ...others } = message;
  const said = message.content === '' ? '' : `${message.content}\n`;
  return { ...others, role: message.role, content: `${said}${begin}${written.join(separator)}${end}` };
}

/** Results as a user's message, one for all that stand together: most models know them so from Qwen's and Hermes's templates. */
function withoutToolRole(messages: readonly PlainMessage[]): PlainMessage[] {
  const out: PlainMessage[] = [];
  let isOpen = false;
  for (const message of messages) {
    const isResult = message.role === 'tool';
    const content = isResult ? `<tool_response>\n${message.content}\n</tool_response>` : message.content;
    const last = out.at(-1);
    // Templates refuse two messages of one role in a row.
    if (last && isOpen && (isResult || message.role === 'user')) out[out.length - 1] = { ...last, content: `${last.content}\n${content}` };
    else out.push(isResult ? { role: 'user', content } : message);
    isOpen = isResult || (isOpen && message.role === 'user');
  }
  return out;
}

/** Instructions in front of what the user says first. */
function withoutSystem(messages: readonly PlainMessage[]): readonly PlainMessage[] {
  const [first, second, ...rest] = messages;
  if (first?.role !== 'system' || second?.role !== 'user') return messages;
  return [{ ...second, content: `${first.content}\n\n${second.content}` }, ...rest];
}
