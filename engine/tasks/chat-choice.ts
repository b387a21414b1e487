/** One choice of a chat answer: from generated tokens to the deltas that its client sees. */
import type { ChatEvent, TokenLogprob } from '../api.ts';
import type { TokenLogprobs } from '../runner/logit-processors.ts';
import { Detokenizer, StopMatcher } from '../text/detokenizer.ts';
import type { TokenMatcher } from '../text/grammar.ts';
import { HARMONY_ENDS, HarmonyParser } from '../text/harmony.ts';
import type { HarmonyOptions } from '../text/harmony.ts';
import { OutputParser } from '../text/output-parser.ts';
import type { AnswerParser, OutputEvent, OutputParserOptions } from '../text/output-parser.ts';
import type { Tokenizer } from '../text/tokenizer.ts';

type Delta = Extract<ChatEvent, { type: 'delta' }>;

/** Decodes the bytes of single tokens; a byte order mark (U+FEFF) at the start of a token is text. */
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** Options of the parser that splits an answer into content, reasoning and tool calls: Harmony's, or the one for all other models. */
export type ParserOptions = OutputParserOptions | { readonly harmony: HarmonyOptions };

export interface ChoiceOptions {
  /** The choice's index among the `n` of its request. */
  readonly index: number;
  /** Stop sequences. */
  readonly stop: readonly string[];
  readonly skipSpecialTokens: boolean;
  readonly parser: ParserOptions;
  readonly matcher: TokenMatcher | undefined;
  /** Prompt tokens, if the answer continues their text (a raw prompt or an open message): how its first token decodes depends on them. */
  readonly before?: readonly number[] | undefined;
  /** Whether a token that ends the answer without text has its log-probability reported, as text completions do. */
  readonly reportsEnd?: boolean | undefined;
}

/** Removes the stop sequence from the event that it ended. Text that turned out to be no tool call may precede it in the same event. */
function withoutStop(event: OutputEvent, stop: string): OutputEvent[] {
  if (event.type !== 'content') return [event];
  const { text } = event;
  if (stop.endsWith(text)) return [];
  return [{ ...event, text: text.endsWith(stop) ? text.slice(0, -stop.length) : text }];
}

/** Turns one choice's tokens into deltas: decodes them, matches stop sequences, and separates reasoning and tool calls from content. */
export class ChatChoice {
  readonly index: number;
  readonly matcher: TokenMatcher | undefined;
  readonly #tokenizer: Tokenizer;
  readonly #reportsEnd: boolean;
  /** Whether a token has no text wherever it stands. */
  readonly #isSilent: (id: number) => boolean;
  readonly #detokenizer: Detokenizer;
  readonly #stops: StopMatcher;
  readonly #parser: AnswerParser;
  /** Harmony's tokens that end the answer and complete its last message. */
  readonly #closing: ReadonlySet<unknown>;
  /** Tokens whose text has not been sent, because it may be part of a character, a stop sequence or a tag; `#logprobs` are theirs. */
  #unsent = 0;
  #logprobs: NonNullable<Delta['logprobs']>[number][] = [];

  constructor(tokenizer: Tokenizer, { index, stop, skipSpecialTokens, parser, matcher, before, reportsEnd = false }: ChoiceOptions) {
    this.index = index;
    this.matcher = matcher;
    this.#tokenizer = tokenizer;
    this.#reportsEnd = reportsEnd;
    // Harmony's tags are special tokens.
    const skips = skipSpecialTokens && !('harmony' in parser);
    const read = 'harmony' in parser ? [] : (parser.tokens ?? []);
    const keep = new Set(read.map((spelling) => tokenizer.tokenId(spelling)));
    const options = { skipSpecialTokens: skips, keep };
    this.#isSilent = (id) => tokenizer.isSilent(id, options);
    this.#detokenizer = new Detokenizer((ids) => tokenizer.decode(ids, options), before);
    this.#stops = new StopMatcher(stop);
    this.#parser = 'harmony' in parser ? new HarmonyParser(parser.harmony) : new OutputParser(parser);
    this.#closing = new Set('harmony' in parser ? HARMONY_ENDS.map((end) => tokenizer.tokenId(end)) : []);
  }

  /** Whether the answer has called a tool so far. */
  get calledTools(): boolean {
    return this.#parser.calls > 0;
  }

  /**
   * Takes one token. `silent`: it ends the answer and has no text of its own. `last`: nothing comes after it. Returns the deltas that can be sent, the
   * stop sequence that was found, if any, and whether the parser wants no more tokens.
   */
  take(
    token: number,
    { silent, last, logprobs }: { silent: boolean; last: boolean; logprobs: TokenLogprobs | undefined },
  ): { deltas: Delta[]; stop: string | undefined; done: boolean } {
    this.#unsent++;
    if (logprobs && (!silent || this.#reportsEnd)) this.#logprobs.push(this.#describe(token, logprobs));
    // The detokenizer keeps what has no text yet, and decodes it again with every token: thousands in a row would hold up everybody's steps.
    const hasText = !silent && !this.#isSilent(token);
    const decoded = (hasText ? this.#detokenizer.push(token) : '') + (last ? this.#detokenizer.flush() : '');
    const { events, stop } = this.#read(decoded);
    if (last && stop === undefined) events.push(...this.#parser.push(this.#stops.flush()));
    const done = this.#parser.done === true;
    const ended = last || stop !== undefined || done;
    if (ended) events.push(...this.#parser.finish(silent && this.#closing.has(token)));
    const deltas = events.map((event) => this.#delta(event));
    // Tokens without text (a tag that was removed) still report their log-probabilities, with the last delta at the latest.
    if (ended && this.#logprobs.length > 0) deltas.push(this.#delta({ type: 'content', text: '' }));
    return { deltas, stop: stop ?? this.#parser.stopped, done };
  }

  /** Parses decoded text up to the first stop sequence that ends the answer. */
  #read(decoded: string): { readonly events: OutputEvent[]; readonly stop: string | undefined } {
    const events: OutputEvent[] = [];
    for (let unread = decoded; ;) {
      const { text, stop, rest } = this.#stops.push(unread);
      events.push(...this.#parser.push(text));
      const { within, stopped } = this.#parser;
      if (stopped !== undefined) return { events, stop: stopped };
      if (stop === undefined || within === 'text') return { events, stop };
      if (within === 'undecided') this.#parser.stopIfText?.(stop);
      // Within a tool call the stop sequence may be part of the call's syntax. It ends the answer only if it completes the call, or if this turns out to be text.
      const found = this.#parser.push(stop);
      if (this.#parser.stopped !== undefined) return { events: [...events, ...found], stop: this.#parser.stopped };
      const isEnd = this.#parser.within === 'text' || (within === 'call' && this.#parser.within === 'layout');
      if (isEnd) return { events: [...events, ...found.flatMap((event) => withoutStop(event, stop))], stop };
      events.push(...found);
      unread = rest;
    }
  }

  #delta(event: OutputEvent): Delta {
    const base = {
      type: 'delta' as const,
      index: this.index,
      text: '',
      tokens: this.#unsent,
      ...(this.#logprobs.length > 0 && { logprobs: this.#logprobs }),
    };
    this.#unsent = 0;
    this.#logprobs = [];
    if (event.type === 'content') return { ...base, text: event.text };
    if (event.type === 'reasoning') return { ...base, reasoning: event.text };
    if (event.type === 'call') return { ...base, toolCalls: [{ call: event.index, name: event.name }] };
    return { ...base, toolCalls: [{ call: event.index, arguments: event.text }] };
  }

  #describe(token: number, { logprob, top }: TokenLogprobs): NonNullable<Delta['logprobs']>[number] {
    const spell = (id: number, value: number): TokenLogprob => {
      // Decoding a single SentencePiece token would lose its leading space.
      const bytes = this.#tokenizer.bytes(id);
      return { token: UTF8.decode(bytes), bytes: [...bytes], logprob: value };
    };
    return { ...spell(token, logprob), top: top.map((other) => spell(other.token, other.logprob)) };
  }
}
