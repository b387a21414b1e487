/**
 * Splits an answer in Harmony, as gpt-oss writes it (https://cookbook.openai.com/articles/openai-harmony), as it streams. An answer is messages:
 *
 *     <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...<|return|>
 *     <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
 *
 * `analysis` is reasoning, `final` and what `commentary` says before a call are content, a message to `functions.NAME` calls that tool. The result does not depend
 * on where the stream is cut.
 */
import { JsonScan } from './json-scan.ts';
import { firstTag, merge, partialTag } from './output-parser.ts';
import type { AnswerParser, OutputEvent, Within } from './output-parser.ts';

const START = '<|start|>';
const CHANNEL = '<|channel|>';
const MESSAGE = '<|message|>';
/** What ends a message; the last two begin the next one's header. */
const ENDS = ['<|end|>', '<|return|>', '<|call|>', START, CHANNEL];
/** How headers begin: the first one of an answer goes on where the prompt ends. */
const HEADS = [START, CHANNEL, MESSAGE, '<|constrain|>', 'to='];
/** Characters of the longest header: a role, a tool's name and a channel. */
const LONGEST_HEADER = 512;
/** Between two messages of one kind. */
const PARAGRAPH = '\n\n';

/** The tokens that end an answer: a model may name one of them only. */
export const HARMONY_ENDS = ['<|return|>', '<|call|>'] as const;

/** What a template writes in front of an answer that is held to a grammar: it has no other messages, and a call is in the form that the grammar has. */
export const HARMONY_CONTENT = `${CHANNEL}final${MESSAGE}`;
export const HARMONY_CALLS = `${CHANNEL}commentary${MESSAGE}`;

export interface HarmonyOptions {
  /** The prompt, which may have begun a message. */
  readonly prompt: string;
  /** Reasoning is told apart; otherwise it is content. */
  readonly separate: boolean;
  /** Names of the tools offered. */
  readonly tools: readonly string[];
  /** One call ends the answer. */
  readonly single?: boolean;
}

/** Whether a chat template writes Harmony. */
export function isHarmony(template: string): boolean {
  return [START, CHANNEL, MESSAGE].every((tag) => template.includes(tag));
}

export class HarmonyParser implements AnswerParser {
  readonly #separate: boolean;
  readonly #tools: ReadonlySet<string>;
  readonly #single: boolean;
  /** What the message under way is; undefined in a header and between messages. */
  #kind: 'content' | 'reasoning' | 'arguments' | undefined;
  /** Text not yet given away: a header, or what may be the beginning of a tag. */
  #held = '';
  #calls = 0;
  /** Reads the arguments under way. */
  #scan = new JsonScan();
  /** Whether the message under way has said something, and which kinds have before it. */
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

  /** The one call that is wanted is there, whole. */
  get done(): boolean {
    return this.#single && this.#calls > 0 && this.#kind !== 'arguments';
  }

  push(text: string): OutputEvent[] {
    const events: OutputEvent[] = [];
    this.#held += text;
    while (!this.done && (this.#kind ? this.#stepMessage(this.#kind, events) : this.#stepHeader(events)));
    return merge(events);
  }

  /** A header that was cut says nothing; of a message that was, what may have been a tag is text. One that is closed is whole. */
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
      // What is no message of any form is shown as it was written, a tag in front of it included: it would begin a header again.
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

  /** The end of a call's arguments: what is missing of those that are whole, or what is held of those that were cut. */
  #end(events: OutputEvent[], closed: boolean): void {
    this.#say(events, 'arguments', closed ? this.#scan.close() : this.#scan.cut());
    // A tool without parameters may be called without a word; a client parses what it gets.
    if (closed && !this.#spoke) this.#emit(events, 'arguments', '{}');
  }

  /** Begins the message of a header. */
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
