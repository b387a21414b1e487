/** A file that is being decoded, with its progress and a way to cancel. */
import { signal } from '@preact/signals';
import { decodeAudio } from '../audio/decode.ts';
import type { DecodedSound } from '../audio/decode.ts';
import { orAborted } from '../util.ts';

export class Reading {
  readonly name: string;
  /** Share that is decoded, 0..1. */
  readonly done = signal(0);
  /** The decoded sound. Rejects with an Error with a message for people, or with an AbortError after `cancel`. */
  readonly sound: Promise<DecodedSound>;
  readonly #abort = new AbortController();

  constructor(file: File) {
    this.name = file.name;
    const { signal } = this.#abort;
    // The browser's decoders go on after `cancel`, but nothing waits for them.
    this.sound = orAborted(decodeAudio(file, { signal, onProgress: (done) => (this.done.value = done) }), signal);
  }

  cancel(): void {
    this.#abort.abort();
  }
}

export function ReadingLine({ reading }: { reading: Reading }) {
  const { done, name } = reading;
  return (
    <section class="stack" aria-label="File">
      <div class="row spread">
        <span class="number">{name}</span>
        <span class="label">reading {Math.round(done.value * 100)} %</span>
      </div>
      {/* Without a value it shows that it goes on: the browser's own decoders do not say how far they are. */}
      <progress {...(done.value > 0 && { value: done.value })} max={1} aria-label={`Reading ${name}`} />
      <div class="row">
        <button onClick={() => reading.cancel()}>Cancel</button>
      </div>
    </section>
  );
}
