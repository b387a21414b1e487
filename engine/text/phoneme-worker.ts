/** Worker thread of a Phonemizer: converts texts to IPA, in order. */
import { EngineError } from '../errors.ts';
import type { Platform, WorkerPort } from '../platform/platform.ts';
import { serveThread } from '../platform/thread.ts';
import { value } from '../util/rpc.ts';
import type { SpeechLanguage } from '../util/speech-languages.ts';
import { Espeak } from './espeak.ts';
import { toIpa } from './phonemes.ts';

export const PHONEME_OPERATIONS = { toIpa: value<SpokenText, string>() };

/** A text, and the language in which it is read. */
export interface SpokenText {
  readonly text: string;
  readonly language: SpeechLanguage;
}

/** Starts espeak-ng; throws EngineError('unsupported') where the platform has none. */
export async function startEspeak({ espeak }: Pick<Platform, 'espeak'>): Promise<Espeak> {
  if (!espeak) throw new EngineError('unsupported', 'speech needs espeak-ng, which is not here');
  return Espeak.start(await espeak());
}

/** Serves the port until the thread is ended. */
export function main(platform: Platform, port: WorkerPort): void {
  const espeak = startEspeak(platform);
  espeak.catch(() => undefined);
  serveThread(PHONEME_OPERATIONS, { toIpa: async ({ text, language }) => toIpa(await espeak, text, language) }, port, (line) =>
    platform.log(line),
  );
}
