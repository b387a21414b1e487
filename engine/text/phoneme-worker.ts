/** Worker thread of a Phonemizer: reads texts, in order. */
import type { EspeakLanguage } from '../platform/espeak.ts';
import type { Platform, WorkerPort } from '../platform/platform.ts';
import { serveThread } from '../platform/thread.ts';
import { value } from '../util/rpc.ts';
import type { UnspacedLanguage } from '../util/speech-languages.ts';
import { Pronouncer } from './pronouncer.ts';
import type { SpokenSpan } from './spoken-spans.ts';

export const PHONEME_OPERATIONS = {
  toIpa: value<TextIn<EspeakLanguage>, string>(),
  toSpans: value<TextIn<UnspacedLanguage>, readonly SpokenSpan[]>(),
};

/** A text, and the language in which it is read. */
export interface TextIn<Language> {
  readonly text: string;
  readonly language: Language;
}

/** Serves the port until the thread is ended. */
export function main(platform: Platform, port: WorkerPort): void {
  const pronouncer = new Pronouncer(platform);
  serveThread(
    PHONEME_OPERATIONS,
    {
      toIpa: ({ text, language }) => pronouncer.toIpa(text, language),
      toSpans: ({ text, language }) => pronouncer.toSpans(text, language),
    },
    port,
    (line) => platform.log(line),
  );
}
