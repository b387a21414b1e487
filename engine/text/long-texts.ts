/**
 * Tokenising without holding up the steps of other requests: a megabyte takes seconds. Long texts go to a thread of their own where the platform has
 * threads, and those that cannot fit are refused before.
 */
import { EngineError } from '../errors.ts';
import type { Platform } from '../platform/platform.ts';
import { LazyThread } from '../platform/thread.ts';
import type { Tokenizer } from './tokenizer.ts';
import { TOKENIZER_OPERATIONS } from './tokenizer-worker.ts';

/** Characters up to which a text is tokenised at once: 10 to 20 ms here, a step's time. */
const SHORT = 4096;

export class LongTexts {
  readonly #tokenizer: Tokenizer;
  readonly #source: { readonly path: string; readonly size: number };
  readonly #thread: LazyThread<typeof TOKENIZER_OPERATIONS> | undefined;

  /** `source` is what `tokenizer` was loaded from. */
  constructor(
    { startWorker }: Pick<Platform, 'startWorker'>,
    tokenizer: Tokenizer,
    source: { readonly path: string; readonly size: number },
  ) {
    this.#tokenizer = tokenizer;
    this.#source = source;
    this.#thread =
      startWorker &&
      new LazyThread(TOKENIZER_OPERATIONS, () => startWorker(new URL(/* @vite-ignore */ './tokenizer-worker.ts', import.meta.url)));
  }

  /** As Tokenizer.encode. */
  async encode(text: string, { addSpecialTokens = false }: { addSpecialTokens?: boolean } = {}): Promise<readonly number[]> {
    if (!this.#thread || text.length <= SHORT) return this.#tokenizer.encode(text, { addSpecialTokens });
    return this.#thread.methods.encode({ ...this.#source, text, addSpecialTokens });
  }

  /** Throws EngineError('context_length_exceeded') for a text that has more than `most` tokens however it is cut. */
  refuseLonger(text: string, most: number, param: string): void {
    const least = Math.ceil(text.length / this.#tokenizer.longest);
    if (least <= most) return;
    const message = `the prompt has ${text.length} characters, which are at least ${least} tokens; the context holds ${most}`;
    throw new EngineError('context_length_exceeded', message, { param, details: { promptTokens: least, contextLength: most } });
  }

  async close(): Promise<void> {
    await this.#thread?.close();
  }
}
