/** Worker thread of a Phonemizer: converts texts to IPA, in order. */
import type { Platform, WorkerPort } from '../platform/platform.ts';
import { serveThread } from '../platform/thread.ts';
import { value } from '../util/rpc.ts';
import { toIpa } from './phonemes.ts';
import type { Accent } from './phonemes.ts';

export const PHONEME_OPERATIONS = { toIpa: value<SpokenText, string>() };

/** A text, and the accent in which it is read. */
export interface SpokenText {
  readonly text: string;
  readonly accent: Accent;
}

/** Serves the port until the thread is ended. */
export function main(platform: Platform, port: WorkerPort): void {
  serveThread(PHONEME_OPERATIONS, { toIpa: ({ text, accent }) => toIpa(text, accent) }, port, (line) => platform.log(line));
}
