/**
 * Splits an answer, as it streams, into reasoning (`<think>...</think>`), content and tool calls, in the form that the model writes (call-forms.ts).
 * The result does not depend on where the stream is cut.
 */
import { HERMES } from './call-forms.ts';
import type { CallForm, CallTag } from './call-forms.ts';
import type { CallPart, TaggedCall } from './json-call.ts';
import { UntaggedCalls } from './untagged-calls.ts';

export type OutputEvent =
  | { readonly type: 'content'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** A call whose name is known; `index` counts from 0. */
  | { readonly type: 'call'; readonly index: number; readonly name: string }
  /** The next piece of that call's arguments, JSON text; the pieces together parse. */
  | { readonly type: 'arguments'; readonly index: number; readonly text: string };

/** Text of the answer (or thoughts), a call, or what stands between: white space behind a call, or a header; or what may be text or a call without tags. */
export type Within = 'text' | 'call' | 'layout' | 'undecided';

/** Takes an answer apart, whatever its form. */
export interface AnswerParser {
  /** Number of tool calls seen. */
  readonly calls: number;
  /** What the next character is a part of. */
  readonly within: Within;
  /** Nothing more is wanted of the answer. */
  readonly done?: boolean;
  /** The stop string that ended what was undecided, and proved to be text. */
  readonly stopped?: string | undefined;
  /** A stop string comes next in what is undecided: it ends the answer if that proves to be text. */
  stopIfText?(stop: string): void;
  /** The next piece of the answer. */
  push(text: string): OutputEvent[];
  /** The end of the answer. `closed`: by a token that ends a message, and that is none of the text. */
  finish(closed?: boolean): OutputEvent[];
}

export interface OutputParserOptions {
  /** Split off what stands between the tags of thoughts; `opened` says that the prompt ended with the first, as some templates do. */
  readonly reasoning?: { readonly opened: boolean; readonly tags?: ThoughtTags } | undefined;
  /** Names of the tools offered; absent = tool calls are text. */
  readonly tools?: readonly string[] | undefined;
  /** JSON Schemas of their parameters, in the same order, for calls whose values are text. */
  readonly parameters?: readonly unknown[] | undefined;
  /** How the model writes calls; without it as `<tool_call>` and JSON. */
  readonly form?: CallForm | undefined;
  /** The answer can only be calls: the beginning of one that was cut is no content. */
  readonly forced?: boolean | undefined;
  /** The answer is calls or JSON, which may say what looks like a call: it begins with one or has none. */
  readonly held?: boolean | undefined;
  /** The answer goes on from a text: white space in front of it is its own. */
  readonly continued?: boolean | undefined;
  /** One call ends the answer. */
  readonly single?: boolean | undefined;
  /** Special tokens that are read here, and so must be part of the text. */
  readonly tokens?: readonly string[] | undefined;
}

/** What stands around thoughts, and which tokens spell it. */
export interface ThoughtTags {
  readonly open: string;
  readonly close: string;
  readonly tokens: readonly string[];
}

/** A call that is being read. */
interface OpenCall {
  readonly tag: CallTag;
  readonly reader: TaggedCall;
}

type State = 'content' | 'reasoning' | 'call';

/** As most models write them. */
export const THINK: ThoughtTags = { open: '<think>', close: '</think>', tokens: ['<think>', '</think>'] };

export class OutputParser implements AnswerParser {
  /** None: thoughts are content. */
  readonly #thoughts: ThoughtTags | undefined;
  readonly #form: CallForm;
  /** Schemas of parameters by tool. */
  readonly #tools: ReadonlyMap<string, unknown> | undefined;
  readonly #forced: boolean;
  readonly #isHeld: boolean;
  readonly #single: boolean;
  #state: State;
  /** Text not yet given away because it may be the beginning of a tag, or belongs to an unfinished call. */
  #held = '';
  #call: OpenCall | undefined;
  /** A closing tag that may follow, and had no opening one. */
  #overdue: string | undefined;
  /** Content that has begun, as long as it may be calls and nothing else. */
  #untagged: UntaggedCalls | undefined;
  /** The first stop string in that content, and how much stands in front of it. */
  #stop: { readonly text: string; readonly at: number } | undefined;
  #stopped: string | undefined;
  #calls = 0;
  /** Names that calls have begun with, also of those that are not wanted. */
  #named = 0;
  /** White space between tags is layout, not content. */
  #trim = false;
  /** Content was given away. */
  #spoke = false;
  /** Nothing more comes. */
  #isOver = false;

  constructor(options: OutputParserOptions) {
    const { reasoning, tools, parameters = [], form = HERMES, forced = false, held = false, continued = false, single = false } = options;
    this.#thoughts = reasoning && (reasoning.tags ?? THINK);
    this.#form = form;
    this.#tools = tools && new Map(tools.map((name, i) => [name, parameters[i]]));
    this.#forced = forced;
    this.#isHeld = held;
    this.#single = single;
    this.#state = reasoning?.opened ? 'reasoning' : 'content';
    this.#trim = reasoning !== undefined && (reasoning.opened || !continued);
    this.#beginContent();
  }

  /** Number of tool calls seen. */
  get calls(): number {
    return this.#calls;
  }

  get within(): Within {
    if (this.#state === 'call') return 'call';
    if (this.#untagged) return 'undecided';
    return this.#state === 'content' && this.#calls > 0 && this.#trim ? 'layout' : 'text';
  }

  /** The one call that is wanted is there, whole. */
  get done(): boolean {
    return this.#single && this.#calls > 0 && this.#state !== 'call';
  }

  get stopped(): string | undefined {
    return this.#stopped;
  }

  stopIfText(stop: string): void {
    this.#stop ??= { text: stop, at: this.#untagged!.text.length };
  }

  push(text: string): OutputEvent[] {
    const events: OutputEvent[] = [];
    this.#held += text;
    while (!this.done && this.#step(events));
    return merge(events);
  }

  /** The end of the answer: what was held back is given away as it is, unless it can only be a call that was cut. */
  finish(): OutputEvent[] {
    const events: OutputEvent[] = [];
    this.#isOver = true;
    // A closing tag that might have been part of a call's string was none.
    if (this.#call) while (!this.done && this.#step(events));
    if (this.done) return merge(events);
    for (const { name, arguments: text } of this.#untagged?.calls.slice(0, this.#single ? 1 : undefined) ?? []) {
      const index = this.#calls++;
      events.push({ type: 'call', index, name }, { type: 'arguments', index, text });
    }
    if (this.#untagged && events.length === 0) this.#held = this.#asText(this.#untagged);
    this.#untagged = undefined;
    if (this.#state === 'call') this.#cut(events);
    else if (this.#state === 'reasoning') this.#emit(events, 'reasoning', this.#held);
    else if (!this.#forced || !this.#callTags.some(({ open }) => open.startsWith(this.#held))) this.#emit(events, 'content', this.#held);
    this.#held = '';
    return merge(events);
  }

  get #callTags(): readonly CallTag[] {
    return this.#tools ? this.#form.tags : [];
  }

  /** Consumes what it can of the held text; true while there may be more to do. */
  #step(events: OutputEvent[]): boolean {
    if (this.#call) return this.#stepCall(events, this.#call);
    if (this.#untagged) return this.#stepUntagged(this.#untagged);
    if (this.#overdue !== undefined) return this.#stepOverdue(this.#overdue);
    const calls = this.#isHeld && this.#spoke ? [] : this.#callTags;
    const { open, close } = this.#thoughts ?? {};
    const tags = this.#state === 'reasoning' ? [close!] : [...(open === undefined ? [] : [open]), ...calls.map((tag) => tag.open)];
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
    const tag = this.#state === 'reasoning' ? undefined : calls.find(({ open: begin }) => begin === found.tag);
    if (tag) {
      this.#state = 'call';
      this.#call = { tag, reader: tag.read(this.#tools!) };
    } else {
      this.#state = found.tag === open ? 'reasoning' : 'content';
      this.#beginContent();
    }
    return true;
  }

  /** Only what an answer begins with can be all of it. */
  #beginContent(): void {
    const isFirst = this.#state === 'content' && !this.#spoke && this.#calls === 0;
    if (isFirst && this.#tools && this.#form.untagged && !this.#forced && !this.#isHeld)
      this.#untagged = new UntaggedCalls([...this.#tools.keys()]);
  }

  #stepUntagged(untagged: UntaggedCalls): boolean {
    const isOpen = untagged.push(this.#held);
    this.#held = isOpen ? '' : this.#asText(untagged);
    if (!isOpen) this.#untagged = undefined;
    return !isOpen;
  }

  /** Content that is no calls, as far as a stop string. */
  #asText({ text }: UntaggedCalls): string {
    this.#stopped = this.#stop?.text;
    return text.slice(0, this.#stop?.at);
  }

  #stepCall(events: OutputEvent[], { tag, reader }: OpenCall): boolean {
    const { close } = tag;
    if (close === undefined) {
      const piece = this.#held;
      this.#held = '';
      this.#take(events, reader.push(piece));
      if (reader.rest === undefined) return false;
      this.#held = reader.rest;
    } else {
      const end = this.#held.indexOf(close);
      const taken = end < 0 ? this.#held.length - partialTag(this.#held, [close]) : end;
      if (taken > 0) this.#take(events, reader.push(this.#held.slice(0, taken)));
      this.#held = this.#held.slice(taken);
      if (end < 0) return false;
      const within = reader.goesOn && !this.#isOver ? reader.goesOn(this.#held, close) : 0;
      if (within === undefined) return false;
      if (within > 0) {
        this.#take(events, reader.push(this.#held.slice(0, within)));
        this.#held = this.#held.slice(within);
        return true;
      }
      this.#take(events, reader.end());
      this.#held = this.#held.slice(close.length);
    }
    // What is no call of an offered tool is shown as it was written.
    if (!reader.started) this.#emit(events, 'content', tag.open + reader.text + (close ?? ''));
    this.#overdue = reader.started ? tag.stray : undefined;
    this.#state = 'content';
    this.#call = undefined;
    this.#trim = reader.started;
    return true;
  }

  /** Drops a closing tag behind a call that had no opening one. */
  #stepOverdue(tag: string): boolean {
    const next = this.#held.trimStart();
    if (next.length < tag.length && tag.startsWith(next)) return false;
    this.#overdue = undefined;
    if (next.startsWith(tag)) this.#held = next.slice(tag.length);
    return true;
  }

  /** The end of an answer within a call: one that lacks its closing tag only is one; what is none is shown rather than lost. */
  #cut(events: OutputEvent[]): void {
    const { tag, reader } = this.#call!;
    this.#take(events, reader.started ? (reader.cut?.() ?? []) : reader.end());
    if (!reader.started && !this.#forced) this.#emit(events, 'content', tag.open + reader.text + this.#held);
  }

  /** Passes on what a call says; of several where one is wanted, the first. */
  #take(events: OutputEvent[], parts: readonly CallPart[]): void {
    for (const { type, text } of parts) {
      if (type === 'name') this.#named++;
      if (this.#single && this.#named > 1) return;
      if (type === 'name') events.push({ type: 'call', index: this.#calls++, name: text });
      else events.push({ type, index: this.#calls - 1, text });
    }
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
