/**
 * Converts text to a checkpoint's phonemes, in a worker thread if the platform has threads: espeak-ng synthesises the whole text, which would block the steps of
 * every other request. In a browser tab the engine has its own thread already, and one user.
 */
import type { Platform } from '../platform/platform.ts';
import { LazyThread } from '../platform/thread.ts';
import { PHONEME_OPERATIONS } from './phoneme-worker.ts';
import { fromIpa, toIpa } from './phonemes.ts';
import type { Accent, PhonemeIds, Spellings } from './phonemes.ts';

/** A phonemizer for one checkpoint's alphabet. */
export class Phonemizer {
  readonly #thread: LazyThread<typeof PHONEME_OPERATIONS> | undefined;
  readonly #spellings: Spellings;
  readonly #vocab: ReadonlyMap<string, number>;

  constructor({ startWorker }: Pick<Platform, 'startWorker'>, spellings: Spellings, vocab: ReadonlyMap<string, number>) {
    this.#thread = startWorker && new LazyThread(PHONEME_OPERATIONS, () => startWorker(new URL('./phoneme-worker.ts', import.meta.url)));
    this.#spellings = spellings;
    this.#vocab = vocab;
  }

  /** Converts a piece of speakable English; calls are served in order. Throws EngineError('internal') if the thread ends. */
  async ids(text: string, accent: Accent = 'en-us'): Promise<PhonemeIds> {
    const ipa = await (this.#thread ? this.#thread.methods.toIpa({ text, accent }) : toIpa(text, accent));
    return fromIpa(ipa, this.#spellings[accent], this.#vocab);
  }

  async close(): Promise<void> {
    await this.#thread?.close();
  }
}
