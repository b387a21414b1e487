/** A file on its way to samples: how far it is, and a way out. */
import { signal, useSignal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { decodeAudio } from '../audio/decode.ts';
import type { DecodedSound } from '../audio/decode.ts';
import { isAbort } from '../failure.ts';

export class Reading {
  readonly name: string;
  /** Share that is decoded, 0..1. */
  readonly done = signal(0);
  /** Rejects with an Error for people, or with an abort after `cancel`. */
  readonly sound: Promise<DecodedSound>;
  readonly #abort = new AbortController();

  constructor(file: File) {
    this.name = file.name;
    this.sound = decodeAudio(file, { signal: this.#abort.signal, onProgress: (done) => (this.done.value = done) });
  }

  cancel(): void {
    this.#abort.abort();
  }
}

interface Readings {
  /** The file that is being read. */
  readonly reading: Signal<Reading | undefined>;
  /** Why the last one could not be. */
  readonly problem: Signal<string>;
  /** Reads a file instead of the one that is being read. */
  readonly open: (file: File | undefined) => Promise<void>;
}

/** Reads one file at a time and hands its sound to `hear`. */
export function useReading(hear: (name: string, samples: Float32Array, levels: Float32Array) => void): Readings {
  const reading = useSignal<Reading | undefined>(undefined);
  const problem = useSignal('');
  useEffect(() => () => reading.peek()?.cancel(), []);
  const open = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    problem.value = '';
    reading.peek()?.cancel();
    const next = new Reading(file);
    reading.value = next;
    try {
      const { samples, levels } = await next.sound;
      hear(file.name, samples, levels);
    } catch (error) {
      if (!isAbort(error)) problem.value = `${file.name}: ${error instanceof Error ? error.message : String(error)}`;
    } finally {
      if (reading.peek() === next) reading.value = undefined;
    }
  };
  return { reading, problem, open };
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
