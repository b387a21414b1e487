/**
 * Splits an answer, as it streams, into reasoning (`<think>...</think>`), content and tool calls
 * (`<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, the Hermes form that Qwen and many others write; xml-call.ts and untagged-calls.ts have the others).
 * The result does not depend on where the stream is cut.
 */
import { JsonCall } from './json-call.ts';
import type { TaggedCall } from './json-call.ts';
import { UntaggedCalls } from './untagged-calls.ts';
import { XmlCall } from './xml-call.ts';

export type OutputEvent =
  | { readonly type: 'content'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** A call whose name is known; `index` counts from 0. */
  | { readonly type: 'call'; readonly index: number; readonly name: string }
  /** The next piece of that call's arguments, JSON text; the pieces together parse. */
  | { readonly type: 'arguments'; readonly index: number; readonly text: string };

/** Takes an answer apart, whatever its form. */
export interface AnswerParser {
  /** Number of tool calls seen. */
  readonly calls: number;
  /** Nothing more is wanted of the answer. */
  readonly done?: boolean;
  /** The next piece of the answer. */
  push(text: string): OutputEvent[];
  /** The end of the answer. */
  finish(): OutputEvent[];
}

export interface OutputParserOptions {
  /** Split off `<think>`; `opened` says that the prompt ended with it, as some templates do. */
  readonly reasoning?: { readonly opened: boolean } | undefined;
  /** Names of the tools offered; absent = tool calls are text. */
  readonly tools?: readonly string[] | undefined;
  /** JSON Schemas of their parameters, in the same order, for calls whose values are text. */
  readonly parameters?: readonly unknown[] | undefined;
  /** The answer can only be calls: the beginning of one that was cut is no content. */
  readonly forced?: boolean | undefined;
  /** The answer is calls or JSON, which may say what looks like a call: it begins with one or has none. */
  readonly held?: boolean | undefined;
  /** One call ends the answer. */
  readonly single?: boolean | undefined;
}

type State = 'content' | 'reasoning' | 'call';

const OPEN_THINK = '<think>';
const CLOSE_THINK = '</think>';
export const OPEN_CALL = '<tool_call>';
export const CLOSE_CALL = '</tool_call>';

export class OutputParser implements AnswerParser {
  readonly #reasoning: boolean;
  /** Schemas of parameters by tool. */
  readonly #tools: ReadonlyMap<string, unknown> | undefined;
  readonly #forced: boolean;
  readonly #isHeld: boolean;
  readonly #single: boolean;
  #state: State;
  /** Text not yet given away because it may be the beginning of a tag, or belongs to an unfinished call. */
  #held = '';
  #call: TaggedCall | undefined;
  /** Content that has begun, as long as it may be calls and nothing else. */
  #untagged: UntaggedCalls | undefined;
  #calls = 0;
  /** White space between tags is layout, not content. */
  #trim = false;
  /** Content was given away. */
  #spoke = false;

  constructor({ reasoning, tools, parameters = [], forced = false, held = false, single = false }: OutputParserOptions) {
    this.#reasoning = reasoning !== undefined;
    this.#tools = tools && new Map(tools.map((name, i) => [name, parameters[i]]));
    this.#forced = forced;
    this.#isHeld = held;
    this.#single = single;
    this.#state = reasoning?.opened ? 'reasoning' : 'content';
    this.#trim = reasoning !== undefined;
    this.#beginContent();
  }

  /** Number of tool calls seen. */
  get calls(): number {
    return this.#calls;
  }

  /** The one call that is wanted is there, whole. */
  get done(): boolean {
    return this.#single && this.#calls > 0 && this.#state !== 'call';
  }

  push(text: string): OutputEvent[] {
    const events: OutputEvent[] = [];
    this.#held += text;
    while (!this.done && this.#step(events));
    return merge(events);
  }

  /** The end of the answer: what was held back is given away as it is, unless it can only be a call that was cut. */
  finish(): OutputEvent[] {
    if (this.done) return [];
    const events: OutputEvent[] = [];
    for (const { name, arguments: text } of this.#untagged?.calls.slice(0, this.#single ? 1 : undefined) ?? []) {
      const index = this.#calls++;
      events.push({ type: 'call', index, name }, { type: 'arguments', index, text });
    }
    if (this.#untagged && events.length === 0) this.#held = this.#untagged.text;
    this.#untagged = undefined;
    if (this.#state === 'call') {
      // A call that was cut: what of it cannot be a call any more is shown rather than lost.
      if (!this.#call?.started && !this.#forced) this.#emit(events, 'content', OPEN_CALL + (this.#call?.text ?? '') + this.#held);
    } else if (this.#state === 'reasoning') this.#emit(events, 'reasoning', this.#held);
    else if (!this.#forced || !OPEN_CALL.startsWith(this.#held)) this.#emit(events, 'content', this.#held);
    this.#held = '';
    return merge(events);
  }

  /** Consumes what it can of the held text; true while there may be more to do. */
  #step(events: OutputEvent[]): boolean {
    if (this.#state === 'call') return this.#stepCall(events);
    if (this.#untagged) return this.#stepUntagged(this.#untagged);
    const tags =
      this.#state === 'reasoning'
        ? [CLOSE_THINK]
        : [...(this.#reasoning ? [OPEN_THINK] : []), ...(this.#tools && !(this.#isHeld && this.#spoke) ? [OPEN_CALL] : [])];
    const found = firstTag(this.#held, tags);
    const kind = this.#state === 'reasoning' ? 'reasoning' : 'content';
    if (!found) {
      const keep = partialTag(this.#held, tags);
      this.#emit(events, kind, this.#held.slice(0, this.#held.length - keep));
      this.#held = this.#held.slice(this.#held.length - keep);
      return false;
    }
    this.#emit(events, kind, this.#held.slice(0, found.at));
    this.#held = this.#held.slice(found.at + found.tag.length);
    this.#trim = true;
    if (found.tag === OPEN_CALL) {
      this.#state = 'call';
      this.#call = undefined;
    } else {
      this.#state = found.tag === OPEN_THINK ? 'reasoning' : 'content';
      this.#beginContent();
    }
    return true;
  }

  /** Only what an answer begins with can be all of it. */
  #beginContent(): void {
    const isFirst = this.#state === 'content' && !this.#spoke && this.#calls === 0;
    if (isFirst && this.#tools && !this.#forced && !this.#isHeld) this.#untagged = new UntaggedCalls([...this.#tools.keys()]);
  }

  #stepUntagged(untagged: UntaggedCalls): boolean {
    const isOpen = untagged.push(this.#held);
    this.#held = isOpen ? '' : untagged.text;
    if (!isOpen) this.#untagged = undefined;
    return !isOpen;
  }

  #stepCall(events: OutputEvent[]): boolean {
    // The first characters say in which form it is.
    const begun = this.#held.trimStart();
    if (!this.#call && begun.length < 2) return false;
    const call = (this.#call ??= begun.startsWith('<f') ? new XmlCall(this.#tools!) : new JsonCall(this.#tools!));
    const end = this.#held.indexOf(CLOSE_CALL);
    const keep = end < 0 ? partialTag(this.#held, [CLOSE_CALL]) : 0;
    const piece = end < 0 ? this.#held.slice(0, this.#held.length - keep) : this.#held.slice(0, end);
    for (const part of [...call.push(piece), ...(end < 0 ? [] : call.end())]) {
      if (part.type === 'name') events.push({ type: 'call', index: this.#calls++, name: part.text });
      else events.push({ type: 'arguments', index: this.#calls - 1, text: part.text });
    }
    this.#held = this.#held.slice(piece.length);
    if (end < 0) return false;
    this.#held = this.#held.slice(CLOSE_CALL.length);
    // What stood between the tags and is no call of an offered tool is shown as it was written.
    if (!call.started) this.#emit(events, 'content', OPEN_CALL + call.text + CLOSE_CALL);
    this.#state = 'content';
    this.#call = undefined;
    this.#trim = true;
    return true;
  }

  #emit(events: OutputEvent[], type: 'content' | 'reasoning', text: string): void {
    const shown = this.#trim ? text.trimStart() : text;
    if (shown === '') return;
    this.#trim = false;
    this.#spoke ||= type === 'content';
    events.push({ type, text: shown });
  }
}

/** The first of the tags in a text, and where it stands. */
export function firstTag(text: string, tags: readonly string[]): { readonly tag: string; readonly at: number } | undefined {
  let best: { tag: string; at: number } | undefined;
  for (const tag of tags) {
    const at = text.indexOf(tag);
    if (at >= 0 && (!best || at < best.at)) best = { tag, at };
  }
  return best;
}

/** Length of the longest end of `text` that begins one of the tags. */
export function partialTag(text: string, tags: readonly string[]): number {
  for (let length = Math.min(text.length, Math.max(0, ...tags.map((tag) => tag.length - 1))); length > 0; length--) {
    const end = text.slice(text.length - length);
    if (tags.some((tag) => tag.startsWith(end))) return length;
  }
  return 0;
}

/** Joins neighbouring pieces of one kind. */
export function merge(events: readonly OutputEvent[]): OutputEvent[] {
  const out: OutputEvent[] = [];
  for (const event of events) {
    const last = out.at(-1);
    if (
      last &&
      event.type !== 'call' &&
      last.type === event.type &&
      (event.type !== 'arguments' || (last as typeof event).index === event.index)
    ) {
      out[out.length - 1] = { ...event, text: last.text + event.text };
    } else out.push(event);
  }
  return out;
}
