/** One recording and what was heard in it. */
import { batch, signal } from '@preact/signals';
import type { TranscriptSegment } from '../../../engine/api.ts';
import type { App } from '../app.ts';
import { CAPTURE_RATE } from '../audio/microphone.ts';
import { isAbort, toFailure } from '../failure.ts';
import type { Failure } from '../failure.ts';
import { peaksOf } from '../audio/peaks.ts';
import { transcribeInPieces } from './pieces.ts';

export class Transcript {
  readonly name: string;
  readonly samples: Float32Array;
  readonly levels;
  readonly duration;
  readonly segments = signal<readonly TranscriptSegment[]>([]);
  readonly status = signal<'idle' | 'hearing' | 'done' | 'stopped' | 'failed'>('idle');
  readonly failure = signal<Failure | undefined>(undefined);
  /** Seconds of work. */
  readonly work = signal(0);
  #abort: AbortController | undefined;

  /** `levels` are those of the samples, where somebody has them already. */
  constructor(name: string, samples: Float32Array, levels: Float32Array = peaksOf(samples)) {
    this.name = name;
    this.samples = samples;
    this.levels = signal(levels);
    this.duration = signal(samples.length / CAPTURE_RATE);
  }

  /** Hears the recording; a run in progress is replaced. Never rejects. */
  async run(app: App): Promise<void> {
    this.stop();
    const abort = new AbortController();
    this.#abort = abort;
    const { language, prompt } = app.settings.data.peek().transcription;
    let started = performance.now();
    batch(() => {
      this.segments.value = [];
      this.failure.value = undefined;
      this.status.value = 'hearing';
    });
    app.announcer.say('Transcribing');
    const request = {
      samples: this.samples,
      timestamps: 'segment',
      ...(language && { language }),
      ...(prompt && { prompt }),
    } as const;
    try {
      const engine = await app.engine('transcription');
      // Loading the model is not part of the work.
      started = performance.now();
      for await (const event of transcribeInPieces(engine, request, abort.signal)) {
        if (event.type === 'segment') this.segments.value = [...this.segments.peek(), event.segment];
      }
      this.status.value = 'done';
      app.announcer.say(this.segments.peek().length === 0 ? 'No speech found' : 'Transcript complete');
    } catch (error) {
      this.status.value = isAbort(error) ? 'stopped' : 'failed';
      if (!isAbort(error)) this.failure.value = toFailure(error);
    } finally {
      this.work.value = (performance.now() - started) / 1000;
    }
  }

  stop(): void {
    this.#abort?.abort();
  }

  /** The person's correction of a segment. */
  correct(segment: TranscriptSegment, text: string): void {
    this.segments.value = this.segments.peek().map((other) => (other.id === segment.id ? { ...other, text } : other));
  }
}
