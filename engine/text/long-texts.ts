/**
 * Tokenises without holding up the steps of other requests, since a megabyte of text takes seconds. Long texts are tokenised in a worker thread, if the platform has threads.
 */
import { contextExceeded } from '../errors.ts';
import type { Platform } from '../platform/platform.ts';
import { LazyThread } from '../platform/thread.ts';
import type { Tokenizer } from './tokenizer.ts';
import { TOKENIZER_OPERATIONS } from './tokenizer-worker.ts';

/** Most characters of a text that is tokenised on the calling thread: measured 10 to 20 ms, about the time of a step. */
const SHORT = 4096;

/** A tokenizer with a worker thread for long texts. */
export class LongTexts {
  readonly #tokenizer: Tokenizer;
  readonly #source: { readonly path: string; readonly size: number };
  readonly #thread: LazyThread<typeof TOKENIZER_OPERATIONS> | undefined;

  /** `source`: the model folder's path and the vocabulary size that `tokenizer` was loaded with, for the worker to load it again. */
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

  /** Encodes a text, like Tokenizer.encode, and throws like it. */
  async encode(text: string, { addSpecialTokens = false }: { addSpecialTokens?: boolean } = {}): Promise<readonly number[]> {
    if (!this.#thread || text.length <= SHORT) return this.#tokenizer.encode(text, { addSpecialTokens });
    return this.#thread.methods.encode({ ...this.#source, text, addSpecialTokens });
  }

  /** Throws EngineError('context_length_exceeded') for a text that must have more than `most` tokens, even if each were the longest of the vocabulary. */
  refuseLonger(text: string, most: number, param: string): void {
    const least = Math.ceil(text.length / this.#tokenizer.longest);
    if (least <= most) return;
    const length = `${text.length} characters, which are at least ${least} tokens`;
    throw contextExceeded(length, { promptTokens: least, contextLength: most, param });
  }

  async close(): Promise<void> {
    await this.#thread?.close();
  }
}
