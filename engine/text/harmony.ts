/**
 * Parses an answer in Harmony, the format of gpt-oss (https://cookbook.openai.com/articles/openai-harmony), while it streams. An answer is a sequence of messages:
 *
 *     <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...<|return|>
 *     <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
 *
 * The channel `analysis` is reasoning; `final`, and `commentary` without a recipient, are content; a message to `functions.NAME` calls that tool. The result does
 * not depend on how the stream is divided into pieces.
 */
import { JsonScan } from './json-scan.ts';
import { firstTag, merge, partialTag } from './output-parser.ts';
import type { AnswerParser, OutputEvent, Within } from './output-parser.ts';

const START = '<|start|>';
const CHANNEL = '<|channel|>';
const MESSAGE = '<|message|>';
/** Tags that end a message; the last two also begin the next message's header. */
const ENDS = ['<|end|>', '<|return|>', '<|call|>', START, CHANNEL];
/** Possible beginnings of a header. An answer's first header continues one that the prompt began. */
const HEADS = [START, CHANNEL, MESSAGE, '<|constrain|>', 'to='];
/** Most characters of a header, which has a role, a tool's name and a channel. */
const LONGEST_HEADER = 512;
/** Separates the texts of two messages of the same kind. */
const PARAGRAPH = '\n\n';

/** Tokens that end an answer. A model's configuration may list only one of them as EOS. */
export const HARMONY_ENDS = ['<|return|>', '<|call|>'] as const;

/** Header, written into the prompt, of a constrained answer of content: such an answer is this one message. */
export const HARMONY_CONTENT = `${CHANNEL}final${MESSAGE}`;
/** Header, written into the prompt, of a constrained answer of tool calls, which are in the grammar's own form. */
export const HARMONY_CALLS = `${CHANNEL}commentary${MESSAGE}`;

export interface HarmonyOptions {
  /** Text of the prompt, which may end within a message. */
  readonly prompt: string;
  /** Separate reasoning from content. */
  readonly separate: boolean;
  /** Names of the tools offered. */
  readonly tools: readonly string[];
  /** One call ends the answer. */
  readonly single?: boolean;
}

/** Whether a chat template is in the Harmony format. */
export function isHarmony(template: string): boolean {
  return [START, CHANNEL, MESSAGE].every((tag) => template.includes(tag));
}

/** Parses the answers of gpt-oss. */
export class HarmonyParser implements AnswerParser {
  readonly #separate: boolean;
  readonly #tools: ReadonlySet<string>;
  readonly #single: boolean;
  /** Kind of the current message; undefined within a header and between messages. */
  #kind: 'content' | 'reasoning' | 'arguments' | undefined;
  /** Text held back: part of a header, or of what may be a tag. */
  #held = '';
  #calls = 0;
  /** Scanner of the current call's arguments. */
  #scan = new JsonScan();
  /** Whether the current message has had text; `#spoken` are the kinds of messages that have. */
  #spoke = false;
  readonly #spoken = new Set<string>();

  constructor({ prompt, separate, tools, single = false }: HarmonyOptions) {
    this.#separate = separate;
    this.#single = single;
    this.#tools = new Set(tools);
    const header = prompt.slice(prompt.lastIndexOf(START));
    if (header.startsWith(START) && header.includes(MESSAGE)) this.#open(header.slice(0, header.indexOf(MESSAGE)), []);
  }

  get calls(): number {
    return this.#calls;
  }

  get within(): Within {
    if (this.#kind === undefined) return 'layout';
    return this.#kind === 'arguments' ? 'call' : 'text';
  }

  /** True once the single call that is wanted is complete. */
  get done(): boolean {
    return this.#single && this.#calls > 0 && this.#kind !== 'arguments';
  }

  push(text: string): OutputEvent[] {
    const events: OutputEvent[] = [];
    this.#held += text;
    while (!this.done && (this.#kind ? this.#stepMessage(this.#kind, events) : this.#stepHeader(events)));
    return merge(events);
  }

  /** Ends the answer. Held text of a message is returned, that of an incomplete header dropped. `closed`: a token completed the message. */
  finish(closed = false): OutputEvent[] {
    const events: OutputEvent[] = [];
    if (this.#kind) this.#emit(events, this.#kind, this.#held);
    if (this.#kind === 'arguments') this.#end(events, closed);
    this.#held = '';
    return merge(events);
  }

  #stepHeader(events: OutputEvent[]): boolean {
    const text = this.#held.trimStart();
    if (text === '') return false;
    const isHeader = text.length <= LONGEST_HEADER && HEADS.some((head) => head.startsWith(text) || text.startsWith(head));
    const end = text.indexOf(MESSAGE);
    if (isHeader && end < 0) return false;
    this.#open(isHeader ? text.slice(0, end) : '', events);
    if (isHeader) this.#held = text.slice(end + MESSAGE.length);
    else {
      // Text that is no message is shown as written. Its first character is shown at once: if it begins a tag, it would be taken for a header again.
      const shown = text.startsWith('<') ? this.#held.length - text.length + 1 : 0;
      this.#emit(events, 'content', this.#held.slice(0, shown));
      this.#held = this.#held.slice(shown);
    }
    return true;
  }

  #stepMessage(kind: 'content' | 'reasoning' | 'arguments', events: OutputEvent[]): boolean {
    const found = firstTag(this.#held, ENDS);
    const end = found ? found.at : this.#held.length - partialTag(this.#held, ENDS);
    this.#emit(events, kind, this.#held.slice(0, end));
    this.#held = this.#held.slice(end);
    if (!found) return false;
    if (found.tag !== START && found.tag !== CHANNEL) this.#held = this.#held.slice(found.tag.length);
    if (kind === 'arguments') this.#end(events, true);
    this.#kind = undefined;
    return true;
  }

  /** Ends a call's arguments: completes them if the message was closed, else returns what the scanner holds back. */
  #end(events: OutputEvent[], closed: boolean): void {
    this.#say(events, 'arguments', closed ? this.#scan.close() : this.#scan.cut());
    // A call of a tool without parameters may have no arguments at all, but clients parse them as JSON.
    if (closed && !this.#spoke) this.#emit(events, 'arguments', '{}');
  }

  /** Begins the message that follows a header. */
  #open(header: string, events: OutputEvent[]): void {
    const [, channel] = /<\|channel\|>\s*([a-z]+)/.exec(header) ?? [];
    const [, tool] = /\bto=functions\.([^\s<]+)/.exec(header) ?? [];
    this.#spoke = false;
    if (tool !== undefined && this.#tools.has(tool)) {
      this.#kind = 'arguments';
      this.#scan = new JsonScan();
      events.push({ type: 'call', index: this.#calls++, name: tool });
    } else this.#kind = channel === 'analysis' && this.#separate ? 'reasoning' : 'content';
  }

  #emit(events: OutputEvent[], kind: 'content' | 'reasoning' | 'arguments', text: string): void {
    this.#say(events, kind, kind === 'arguments' ? this.#scan.push(text).text : text);
  }

  #say(events: OutputEvent[], kind: 'content' | 'reasoning' | 'arguments', text: string): void {
    if (text === '') return;
    if (kind === 'arguments') events.push({ type: kind, index: this.#calls - 1, text });
    else events.push({ type: kind, text: !this.#spoke && this.#spoken.has(kind) ? PARAGRAPH + text : text });
    this.#spoke = true;
    this.#spoken.add(kind);
  }
}
