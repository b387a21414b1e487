/**
 * Phonemes of a checkpoint's alphabet, found in a thread of their own where the platform has threads: espeak-ng speaks the whole text to itself, which
 * would hold up the steps of every other request. In a tab the engine has a thread to itself already, and one user.
 */
import { EngineError } from '../errors.ts';
import type { Platform, PlatformWorker } from '../platform/platform.ts';
import type { PhonemeReply, PhonemeRequest } from './phoneme-worker.ts';
import { fromIpa, toIpa } from './phonemes.ts';
import type { PhonemeIds, PhonemeRules } from './phonemes.ts';

interface Waiting {
  readonly resolve: (ipa: string) => void;
  readonly reject: (error: EngineError) => void;
}

export class Phonemizer {
  readonly #platform: Pick<Platform, 'startWorker'>;
  readonly #rules: PhonemeRules;
  readonly #vocab: ReadonlyMap<string, number>;
  readonly #waiting = new Map<number, Waiting>();
  #worker: PlatformWorker | undefined;
  #nextId = 1;

  constructor(platform: Pick<Platform, 'startWorker'>, rules: PhonemeRules, vocab: ReadonlyMap<string, number>) {
    this.#platform = platform;
    this.#rules = rules;
    this.#vocab = vocab;
  }

  /** Phonemes of a piece of speakable English; pieces wait for each other in order of the calls. Throws EngineError('internal') when the thread ends. */
  async ids(text: string): Promise<PhonemeIds> {
    const ipa = this.#platform.startWorker ? await this.#ask(text) : await toIpa(text);
    return fromIpa(ipa, this.#rules, this.#vocab);
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #ask(text: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve, reject });
      (this.#worker ??= this.#start()).post({ id, text } satisfies PhonemeRequest);
    });
  }

  /** A thread that has ended is started again by the next piece. */
  #start(): PlatformWorker {
    const worker = this.#platform.startWorker!(new URL('./phoneme-worker.ts', import.meta.url));
    worker.onMessage((message) => {
      const reply = message as PhonemeReply;
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if ('ipa' in reply) waiting?.resolve(reply.ipa);
      else waiting?.reject(new EngineError('internal', `espeak-ng failed: ${reply.error}`));
    });
    worker.onExit((why) => {
      this.#worker = undefined;
      for (const { reject } of this.#waiting.values()) reject(new EngineError('internal', `the phonemizer's thread ended: ${why}`));
      this.#waiting.clear();
    });
    return worker;
  }
}
