import type { FinishReason } from '../../../engine/api.ts';
import type { AnswerStats } from './conversation-data.ts';

type MeteredEvent =
  | { readonly type: 'start'; readonly promptTokens: number; readonly cachedTokens: number }
  | { readonly type: 'delta'; readonly tokens: number }
  | { readonly type: 'finish'; readonly reason: FinishReason; readonly completionTokens: number };

/** Shortest time, in ms, over which a rate is measured: faster text came in one or two pieces, at the speed of the connection. */
const SHORTEST_MEASURED = 100;

/** Measures the times and token counts of one answer. `now` is a clock in ms. */
export class AnswerMeter {
  readonly #now: () => number;
  readonly #sent: number;
  #first = 0;
  #last = 0;
  #firstTokens = 0;
  #tokens = 0;
  #promptTokens = 0;
  #cachedTokens = 0;
  #reason: FinishReason | undefined;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#sent = now();
  }

  take(event: MeteredEvent): void {
    if (event.type === 'start') ({ promptTokens: this.#promptTokens, cachedTokens: this.#cachedTokens } = event);
    else if (event.type === 'finish') {
      this.#reason = event.reason;
      this.#tokens = event.completionTokens;
    } else {
      this.#last = this.#now();
      if (this.#first === 0) [this.#first, this.#firstTokens] = [this.#last, event.tokens];
      this.#tokens += event.tokens;
    }
  }

  /** Returns the statistics; `rate` is 0 when too little time has passed to measure it. */
  stats(): AnswerStats {
    const ms = this.#last - this.#first;
    return {
      promptTokens: this.#promptTokens,
      cachedTokens: this.#cachedTokens,
      completionTokens: this.#tokens,
      firstTokenMs: this.#first === 0 ? 0 : this.#first - this.#sent,
      rate: ms >= SHORTEST_MEASURED ? (1000 * Math.max(0, this.#tokens - this.#firstTokens)) / ms : 0,
      ...(this.#reason && { reason: this.#reason }),
    };
  }
}
