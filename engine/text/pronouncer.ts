/** Reads texts with what each language needs, which is loaded when it is first asked for: espeak-ng, readings of Chinese, a dictionary of Japanese. */
import { EngineError } from '../errors.ts';
import type { EspeakLanguage } from '../platform/espeak.ts';
import type { Platform } from '../platform/platform.ts';
import { once } from '../util/once.ts';
import type { UnspacedLanguage } from '../util/speech-languages.ts';
import { Espeak } from './espeak.ts';
import { createJapanese } from './japanese.ts';
import { loadMandarin } from './mandarin.ts';
import { toIpa } from './phonemes.ts';
import type { SpokenSpan } from './spoken-spans.ts';

/** What it needs of a platform. */
export type SpeechPlatform = Pick<Platform, 'espeak' | 'openJapanese'>;

/** Converts text to phonemes, in this thread. */
export class Pronouncer {
  readonly #espeak: () => Promise<Espeak>;
  readonly #read: Readonly<Record<UnspacedLanguage, () => Promise<(text: string) => SpokenSpan[]>>>;

  constructor(platform: SpeechPlatform) {
    this.#espeak = once(async () => {
      if (!platform.espeak) throw new EngineError('unsupported', 'speech needs espeak-ng, which is not here');
      return Espeak.start(await platform.espeak());
    });
    const ja = once(async () => {
      if (!platform.openJapanese) throw new EngineError('unsupported', 'Japanese needs a dictionary, which is not here');
      return createJapanese(await platform.openJapanese());
    });
    this.#read = { ja, zh: once(loadMandarin) };
  }

  /** Converts speakable text to espeak-ng's IPA: phonemes.ts. */
  async toIpa(text: string, language: EspeakLanguage): Promise<string> {
    return toIpa(await this.#espeak(), text, language);
  }

  /** Converts Chinese or Japanese to misaki's phonemes, and leaves words of Latin letters. */
  async toSpans(text: string, language: UnspacedLanguage): Promise<readonly SpokenSpan[]> {
    return (await this.#read[language]())(text);
  }
}
