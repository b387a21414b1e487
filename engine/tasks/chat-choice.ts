import type { ChatEvent, TokenLogprob } from '../api.ts';
import type { TokenLogprobs } from '../runner/logit-processors.ts';
import { Detokenizer, StopMatcher } from '../text/detokenizer.ts';
import type { GrammarMatcher } from '../text/grammar.ts';
import { HARMONY_ENDS, HarmonyParser } from '../text/harmony.ts';
import type { HarmonyOptions } from '../text/harmony.ts';
import { OutputParser } from '../text/output-parser.ts';
import type { AnswerParser, OutputEvent, OutputParserOptions } from '../text/output-parser.ts';
import type { Tokenizer } from '../text/tokenizer.ts';

type Delta = Extract<ChatEvent, { type: 'delta' }>;

/** Of tokens, which may begin with U+FEFF. */
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** How an answer's text is taken apart. */
export type ParserOptions = OutputParserOptions | { readonly harmony: HarmonyOptions };

export interface ChoiceOptions {
  readonly index: number;
  readonly stop: readonly string[];
  readonly skipSpecialTokens: boolean;
  readonly parser: ParserOptions;
  readonly matcher: GrammarMatcher | undefined;
  /** The tokens that the answer goes on from, where it is no text of its own. */
  readonly before?: readonly number[] | undefined;
}

/** What a stop string ended, without the stop string; that of what was no call has text in front of it. */
function withoutStop(event: OutputEvent, stop: string): OutputEvent[] {
  if (event.type !== 'content') return [event];
  const { text } = event;
  if (stop.endsWith(text)) return [];
  return [{ ...event, text: text.endsWith(stop) ? text.slice(0, -stop.length) : text }];
}

/** One choice's way from tokens to what its client sees: characters, stop strings, reasoning, tool calls. */
export class ChatChoice {
  readonly index: number;
  readonly matcher: GrammarMatcher | undefined;
  readonly #tokenizer: Tokenizer;
  /** Whether a token has no text wherever it stands. */
  readonly #isSilent: (id: number) => boolean;
  readonly #detokenizer: Detokenizer;
  readonly #stops: StopMatcher;
  readonly #parser: AnswerParser;
  /** Tokens that close the message that they end an answer with. */
  readonly #closing: ReadonlySet<unknown>;
  /** Tokens, and their log-probabilities, whose text has not been sent: parts of a character or of a possible stop string. */
  #unsent = 0;
  #logprobs: NonNullable<Delta['logprobs']>[number][] = [];

  constructor(tokenizer: Tokenizer, { index, stop, skipSpecialTokens, parser, matcher, before }: ChoiceOptions) {
    this.index = index;
    this.matcher = matcher;
    this.#tokenizer = tokenizer;
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

  /** Whether the answer called tools. */
  get calledTools(): boolean {
    return this.#parser.calls > 0;
  }

  /**
   * Takes one token. `silent`: it ends the answer and has no text of its own. `last`: nothing comes after it. Returns what can be sent, the stop
   * string that was found, if one was, and whether nothing more is wanted.
   */
  take(
    token: number,
    { silent, last, logprobs }: { silent: boolean; last: boolean; logprobs: TokenLogprobs | undefined },
  ): { deltas: Delta[]; stop: string | undefined; done: boolean } {
    this.#unsent++;
    if (logprobs && !silent) this.#logprobs.push(this.#describe(token, logprobs));
    // The detokenizer keeps what has no text yet, and decodes it again with every token: thousands in a row would hold up everybody's steps.
    const hasText = !silent && !this.#isSilent(token);
    const decoded = (hasText ? this.#detokenizer.push(token) : '') + (last ? this.#detokenizer.flush() : '');
    const { events, stop } = this.#read(decoded);
    if (last && stop === undefined) events.push(...this.#parser.push(this.#stops.flush()));
    const done = this.#parser.done === true;
    const ended = last || stop !== undefined || done;
    if (ended) events.push(...this.#parser.finish(silent && this.#closing.has(token)));
    const deltas = events.map((event) => this.#delta(event));
    // Tokens without text (a swallowed tag) still report their log-probabilities, with the end at the latest.
    if (ended && this.#logprobs.length > 0) deltas.push(this.#delta({ type: 'content', text: '' }));
    return { deltas, stop: stop ?? this.#parser.stopped, done };
  }

  /** What a text says, as far as the first stop string in it that ends the answer. */
  #read(decoded: string): { readonly events: OutputEvent[]; readonly stop: string | undefined } {
    const events: OutputEvent[] = [];
    for (let unread = decoded; ;) {
      const { text, stop, rest } = this.#stops.push(unread);
      events.push(...this.#parser.push(text));
      const { within, stopped } = this.#parser;
      if (stopped !== undefined) return { events, stop: stopped };
      if (stop === undefined || within === 'text') return { events, stop };
      if (within === 'undecided') this.#parser.stopIfText?.(stop);
      // Within a call it is a part of its arguments, or of what stands around them; it ends the answer where it ends the call, or goes on as text.
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
      // Decoded by itself, a token of SentencePiece has lost the space that it begins with.
      const bytes = this.#tokenizer.bytes(id);
      return { token: UTF8.decode(bytes), bytes: [...bytes], logprob: value };
    };
    return { ...spell(token, logprob), top: top.map((other) => spell(other.token, other.logprob)) };
  }
}
