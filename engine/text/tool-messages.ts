/** Adapts the tool calls and tool results of a conversation to what a model's chat template accepts. */
import { isObject } from '../util/json.ts';
import type { CallWriting } from './call-forms.ts';
import { mendJson, readJson } from './json-scan.ts';

/** A message whose content is one string and whose tool calls have parsed arguments. */
export type PlainMessage = Readonly<Record<string, unknown>> & { readonly role: string; readonly content: string };

/** Rewrites the messages that the template with this `source` cannot render; `writing` is the syntax for tool calls that have to become text. */
export function fitToolMessages(messages: readonly PlainMessage[], source: string, writing: CallWriting): readonly PlainMessage[] {
  const system = /system role (?:is )?not supported/i.test(source) ? withoutSystem(messages) : messages;
  if (!system.some((message) => message.role === 'tool' || callsOf(message).length > 0)) return system;
  const single = /single tool-calls? at once/i.test(source) ? oneByOne(system) : system;
  const named = wantsShortIds(source) ? single.map(withShortIds) : single;
  if (source.includes('tool_responses') && !/role['"\]]*\s*==\s*['"]tool['"]/.test(source)) return joinResponses(named);
  const written = takesCalls(source) ? named : named.map((message) => withWrittenCalls(message, writing));
  return takesResults(source) ? written : withoutToolRole(written);
}

/** Whether a template shows the tools to the model. */
export const showsTools = (source: string): boolean => source.includes('tools');

/**
 * Whether a template renders the calls of earlier messages. If it does not show the tools, a system message asks for calls in Hermes form, and earlier calls must look
 * the same, even if the template could render them in a form of its own, as those of DeepSeek's distilled models could.
 */
const takesCalls = (source: string): boolean => showsTools(source) && source.includes('tool_calls');

/** Whether a template renders the results of calls: it names their role, or prints whatever role a message has beside calls, as Seed-OSS's does. */
const takesResults = (source: string): boolean => showsTools(source) && (/['"]tool['"]/.test(source) || (takesCalls(source) && /\+ message\.role \+/.test(source))); // prettier-ignore

/** Most characters of invalid arguments that are repaired per conversation: more fit into no context, and would take a second. */
const MENDED_CHARACTERS = 1 << 20;
/** Most arguments per conversation that are found not to be JSON: more calls fit into no context, and an exception for each takes seconds. */
const MOST_WRONG = 4096;

/**
 * Returns a function that parses the arguments of a conversation's tool calls. `arguments` arrive as JSON text, but templates want an object, which they print or
 * iterate over. Text that is not JSON, as models write it and as answers that were cut off leave it, is kept if the template can print a string, and
 * becomes `{}` otherwise. Refusing it would end the conversation, since clients send it again with every turn.
 */
export function callReader(source: string): (call: unknown) => unknown {
  const joinsText = takesCalls(source) && joinsArguments(source);
  const showsText = joinsText || !takesCalls(source) || /arguments['"\]]*\s+is\s+(?:not\s+)?string/.test(source);
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
    // Some clients encode arguments as JSON twice; the AI SDK does so when it could not parse them.
    const written = typeof said === 'string' ? said : text;
    const read = typeof said === 'string' ? readArguments(said) : said;
    const shown = showsText && written.trim() !== '' ? written : joinsText ? '{}' : {};
    const given = isObject(read) ? (joinsText ? spelled(written, read) : read) : shown;
    return { ...call, function: { ...call['function'], arguments: given } };
  };
}

/** Whether a template joins arguments to other text without asking what they are, as Apertus's does: they have to be text. */
const joinsArguments = (source: string): boolean =>
  /\+\s*[\w.'"[\]]*arguments['"\]]*\s*\+/.test(source) && !/arguments['"\]]*\s+is\s/.test(source);

/** Arguments as a client writes them, if they are JSON without mending. */
function spelled(written: string, read: unknown): string {
  try {
    JSON.parse(written);
    return written;
  } catch {
    return JSON.stringify(read);
  }
}

interface PlainCall {
  readonly id?: unknown;
  readonly function: { readonly name: string; readonly arguments: unknown };
}

function callsOf({ tool_calls: calls }: PlainMessage): readonly PlainCall[] {
  return Array.isArray(calls) ? (calls as PlainCall[]) : [];
}

/** Splits a message with several calls into one message per call, each followed by its results, since Llama 3's templates refuse more than one call per message. */
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
    // Results that belong to none of the calls follow the last one.
    for (; messages[at]?.role === 'tool'; at++) (byId.get(messages[at]!['tool_call_id']) ?? turns.at(-1)!).push(messages[at]!);
    out.push(turns.flat());
  }
  return out.flat();
}

/** Whether a template accepts only call ids of nine letters and digits, as Mistral's do. */
const wantsShortIds = (source: string): boolean => /\|\s*length\s*!=\s*9/.test(source);

function withShortIds(message: PlainMessage): PlainMessage {
  const { tool_call_id: id } = message;
  const calls = callsOf(message).map((call) => ({ ...call, id: shortId(call.id) }));
  return { ...message, ...(id !== undefined && { tool_call_id: shortId(id) }), ...(calls.length > 0 && { tool_calls: calls }) };
}

/** Shortens a call id to its last nine letters and digits, the random part of ids that servers make. */
const shortId = (id: unknown): string =>
  String(id)
    .replaceAll(/[^A-Za-z0-9]/g, '')
    .slice(-9)
    .padStart(9, '0');

/** Moves tool results, and the answer to them, into the message with the calls, where Gemma 4's first template expects them. */
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

/** Writes a message's tool calls into its content, for a template that would omit them. */
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

/** Turns neighbouring tool results into one user message with `<tool_response>` tags, which most models know from Qwen's and Hermes's templates. */
function withoutToolRole(messages: readonly PlainMessage[]): PlainMessage[] {
  const out: PlainMessage[] = [];
  let isOpen = false;
  for (const message of messages) {
    const isResult = message.role === 'tool';
    const content = isResult ? `<tool_response>\n${message.content}\n</tool_response>` : message.content;
    const last = out.at(-1);
    // Some templates refuse two messages of the same role in a row.
    if (last && isOpen && (isResult || message.role === 'user')) out[out.length - 1] = { ...last, content: `${last.content}\n${content}` };
    else out.push(isResult ? { role: 'user', content } : message);
    isOpen = isResult || (isOpen && message.role === 'user');
  }
  return out;
}

/** Prepends the system message to the user's first message. */
function withoutSystem(messages: readonly PlainMessage[]): readonly PlainMessage[] {
  const [first, second, ...rest] = messages;
  if (first?.role !== 'system' || second?.role !== 'user') return messages;
  return [{ ...second, content: `${first.content}\n\n${second.content}` }, ...rest];
}
