/** The thread of a Phonemizer: text in, IPA out, in order. */
import type { Platform, WorkerPort } from '../platform/platform.ts';
import { toIpa } from './phonemes.ts';

export interface PhonemeRequest {
  readonly id: number;
  readonly text: string;
}

export type PhonemeReply = { readonly id: number; readonly ipa: string } | { readonly id: number; readonly error: string };

/** Serves the port until the thread is ended. */
export function main(_platform: Platform, port: WorkerPort): void {
  let queue = Promise.resolve();
  port.onMessage((message) => {
    const { id, text } = message as PhonemeRequest;
    queue = queue.then(async () => {
      const reply: PhonemeReply = await toIpa(text).then(
        (ipa) => ({ id, ipa }),
        (error: unknown) => ({ id, error: String(error) }),
      );
      port.post(reply);
    });
  });
}
