/**
 * Parses an answer while it streams into reasoning (`<think>...</think>`), content and tool calls, which each model family writes in its own form
 * (call-forms.ts). The result does not depend on how the stream is divided into pieces.
 */
import { HERMES } from './call-forms.ts';
import type { CallForm, CallTag } from './call-forms.ts';
import type { CallPart, TaggedCall } from './json-call.ts';
import { UntaggedCalls } from './untagged-calls.ts';

export type OutputEvent =
  | { readonly type: 'content'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** A tool call has begun and its name is known; `index` counts the answer's calls from 0. */
  | { readonly type: 'call'; readonly index: number; readonly name: string }
  /** The next piece of that call's arguments. Concatenated, the pieces are one JSON value. */
  | { readonly type: 'arguments'; readonly index: number; readonly text: string };

/**
 * What the parser is within: `text` of the content or reasoning; a tool `call`; `layout`, which is white space after a call or a Harmony header;
 * `undecided`, content that may still prove to be tool calls without tags.
 */
export type Within = 'text' | 'call' | 'layout' | 'undecided';

/** A streaming parser of answers: OutputParser, or HarmonyParser for gpt-oss. */
export interface AnswerParser {
  /** Number of tool calls so far. */
  readonly calls: number;
  /** What the next character belongs to. */
  readonly within: Within;
  /** True once the answer is complete, so that generation can stop. */
  readonly done?: boolean;
  /** The stop sequence announced by `stopIfText`, once the undecided content proved to be text and was cut there. */
  readonly stopped?: string | undefined;
  /** Announces a stop sequence as the next text while `within` is `undecided`. It ends the answer if the undecided content proves to be text. */
  stopIfText?(stop: string): void;
  /** Parses the next piece of the answer. */
  push(text: string): OutputEvent[];
  /** Ends the answer and returns what was held back. `closed`: a token that completes a message ended it; the token itself is not in the text. */
  finish(closed?: boolean): OutputEvent[];
}

export interface OutputParserOptions {
  /** Separate reasoning from content; absent = it is content. `opened`: the prompt ended with the opening tag, which some templates write. `tags` default to THINK. */
  readonly reasoning?: { readonly opened: boolean; readonly tags?: ThoughtTags } | undefined;
  /** Names of the tools offered; absent = tool calls are not parsed. */
  readonly tools?: readonly string[] | undefined;
  /** JSON Schemas of the tools' parameters, in the order of `tools`: they give the types in forms that write values as plain text. */
  readonly parameters?: readonly unknown[] | undefined;
  /** How the model writes calls; default: Hermes, which is JSON within `<tool_call>`. */
  readonly form?: CallForm | undefined;
  /** The answer consists of tool calls alone, so the beginning of a call that was cut off is not shown as content. */
  readonly forced?: boolean | undefined;
  /** The answer is held to a grammar of tool calls or JSON. A call can only be its beginning; later, its tags are part of a JSON string. */
  readonly held?: boolean | undefined;
  /** The answer continues a message, so its leading white space is content. */
  readonly continued?: boolean | undefined;
  /** One call ends the answer. */
  readonly single?: boolean | undefined;
  /** Special tokens that the parser reads, and that must therefore not be skipped when tokens are decoded. */
  readonly tokens?: readonly string[] | undefined;
}

/** Tags around reasoning. */
export interface ThoughtTags {
  readonly open: string;
  readonly close: string;
  /** Spellings of the special tokens that the tags consist of; the first of them opens. */
  readonly tokens: readonly string[];
}

/** A tool call that is being read. */
interface OpenCall {
  readonly tag: CallTag;
  readonly reader: TaggedCall;
}

type State = 'content' | 'reasoning' | 'call';

/** The reasoning tags of most models. */
export const THINK: ThoughtTags = { open: '<think>', close: '</think>', tokens: ['<think>', '</think>'] };

/** Parses the answers of all models but gpt-oss. */
export class OutputParser implements AnswerParser {
  /** Tags of reasoning; undefined if it is not separated from content. */
  readonly #thoughts: ThoughtTags | undefined;
  readonly #form: CallForm;
  /** Parameter schemas by tool name; undefined if tool calls are not parsed. */
  readonly #tools: ReadonlyMap<string, unknown> | undefined;
  readonly #forced: boolean;
  readonly #isHeld: boolean;
  readonly #single: boolean;
  #state: State;
  /** Text held back because it may be the beginning of a tag, or belongs to an unfinished call. */
  #held = '';
  #call: OpenCall | undefined;
  /** A closing tag that the model may write after a call although it never wrote the opening one. */
  #overdue: string | undefined;
  /** The content so far, as long as it may prove to be tool calls without tags. */
  #untagged: UntaggedCalls | undefined;
  /** The first stop sequence in the undecided content, and its offset there. */
  #stop: { readonly text: string; readonly at: number } | undefined;
  #stopped: string | undefined;
  #calls = 0;
  /** Number of calls begun, including those dropped because only one is wanted. */
  #named = 0;
  /** Drop white space up to the next text: between tags it is layout, not content. */
  #trim = false;
  /** Some content has been returned. */
  #spoke = false;
  /** The answer has ended. */
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

  /** Number of tool calls so far. */
  get calls(): number {
    return this.#calls;
  }

  get within(): Within {
    if (this.#state === 'call') return 'call';
    if (this.#untagged) return 'undecided';
    return this.#state === 'content' && this.#calls > 0 && this.#trim ? 'layout' : 'text';
  }

  /** True once the single call that is wanted is complete. */
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

  /** Ends the answer. Text that was held back is returned as it is, unless it can only be a call that was cut off. */
  finish(): OutputEvent[] {
    const events: OutputEvent[] = [];
    this.#isOver = true;
    // A closing tag that might have been within a string of the call's JSON now proves to end the call.
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

  /** Consumes as much of the held text as can be decided; true while another step may consume more. */
  #step(events: OutputEvent[]): boolean {
    if (this.#call) return this.#stepCall(events, this.#call);
    if (this.#untagged) return this.#stepUntagged(this.#untagged);
    if (this.#overdue !== undefined) return this.#stepOverdue(this.#overdue);
    const { open, close } = this.#thoughts ?? {};
    const isThought = this.#state === 'reasoning';
    const calls = this.#isHeld && this.#spoke ? [] : this.#callTags.filter((tag) => !isThought || tag.endsThoughts);
    const ofThoughts = isThought ? close : open;
    const tags = [...(ofThoughts === undefined ? [] : [ofThoughts]), ...calls.map((tag) => tag.open)];
    const found = firstTag(this.#held, tags);
    const kind = isThought ? 'reasoning' : 'content';
    if (!found) {
      const keep = partialTag(this.#held, tags);
      this.#emit(events, kind, this.#held.slice(0, this.#held.length - keep));
      this.#held = this.#held.slice(this.#held.length - keep);
      return false;
    }
    this.#emit(events, kind, this.#held.slice(0, found.at));
    this.#held = this.#held.slice(found.at + found.tag.length);
    this.#trim = true;
    const tag = calls.find(({ open: begin }) => begin === found.tag);
    if (tag) {
      this.#state = 'call';
      this.#call = { tag, reader: tag.read(this.#tools!) };
    } else {
      this.#state = found.tag === open ? 'reasoning' : 'content';
      this.#beginContent();
    }
    return true;
  }

  /** Starts looking for calls without tags. Such calls are the whole answer, so only its very beginning is considered. */
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

  /** The text of undecided content that proved to be no calls, up to the first stop sequence. */
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
    // Something between the tags that is no call of an offered tool is shown as it was written.
    if (!reader.started) this.#emit(events, 'content', tag.open + reader.text + (close ?? ''));
    this.#overdue = reader.started ? tag.stray : undefined;
    this.#state = 'content';
    this.#call = undefined;
    this.#trim = reader.started;
    return true;
  }

  /** Drops a closing tag after a call if the call had no opening one. */
  #stepOverdue(tag: string): boolean {
    const next = this.#held.trimStart();
    if (next.length < tag.length && tag.startsWith(next)) return false;
    this.#overdue = undefined;
    if (next.startsWith(tag)) this.#held = next.slice(tag.length);
    return true;
  }

  /** Ends an answer within a call. A call that lacks only its closing tag counts; text that is no call is shown rather than lost. */
  #cut(events: OutputEvent[]): void {
    const { tag, reader } = this.#call!;
    this.#take(events, reader.started ? (reader.cut?.() ?? []) : reader.end());
    if (!reader.started && !this.#forced) this.#emit(events, 'content', tag.open + reader.text + this.#held);
  }

  /** Turns parts of a call into events. If a single call is wanted, those after the first are dropped. */
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

/** The tag that occurs first in a text, and its offset; undefined if none does. */
export function firstTag(text: string, tags: readonly string[]): { readonly tag: string; readonly at: number } | undefined {
  let best: { tag: string; at: number } | undefined;
  for (const tag of tags) {
    const at = text.indexOf(tag);
    if (at >= 0 && (!best || at < best.at)) best = { tag, at };
  }
  return best;
}

/** Length of the longest suffix of `text` that is a proper prefix of one of the tags. */
export function partialTag(text: string, tags: readonly string[]): number {
  for (let length = Math.min(text.length, Math.max(0, ...tags.map((tag) => tag.length - 1))); length > 0; length--) {
    const end = text.slice(text.length - length);
    if (tags.some((tag) => tag.startsWith(end))) return length;
  }
  return 0;
}

/** Joins neighbouring events of the same kind (and of the same call) into one. */
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
