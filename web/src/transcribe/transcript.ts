/** A recording and its transcript. */
import { batch, signal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import type { TranscriptSegment } from '../../../engine/api.ts';
import type { Services } from '../services.ts';
import { isAbort, toFailure } from '../failure.ts';
import type { Failure } from '../failure.ts';
import { hasAllFields, hasFields } from '../storage/stored-fields.ts';
import type { WorkData } from '../storage/work-store.ts';
import { transcribeInPieces } from './pieces.ts';

export type TranscriptStatus = 'idle' | 'hearing' | 'done' | 'stopped' | 'failed';

/** Plain data of a transcript as stored, without the recording. */
export interface TranscriptData extends WorkData {
  readonly name: string;
  /** Duration of the recording, in seconds. */
  readonly duration: number;
  readonly levels: Float32Array;
  readonly status: TranscriptStatus;
  readonly segments: readonly TranscriptSegment[];
  readonly work: number;
  readonly failure?: Failure;
}

const FIELDS = { id: 'string', created: 'number', name: 'string', duration: 'number', status: 'string', work: 'number' } as const;

/** Whether a record is as this version of the page stores a transcript. */
export const isReadableTranscript = (stored: TranscriptData): boolean =>
  hasFields(stored, FIELDS) &&
  stored.levels instanceof Float32Array &&
  hasAllFields(stored.segments, { id: 'number', start: 'number', end: 'number', text: 'string' }) &&
  (stored.failure === undefined || hasFields(stored.failure, { message: 'string' }));

export class Transcript {
  readonly id: string;
  readonly created: number;
  readonly name: string;
  readonly levels: Signal<Float32Array>;
  readonly duration: Signal<number>;
  readonly segments: Signal<readonly TranscriptSegment[]>;
  readonly status: Signal<TranscriptStatus>;
  readonly failure: Signal<Failure | undefined>;
  /** Time that the transcription took, in seconds. */
  readonly work: Signal<number>;
  /** The recording at 16 kHz; undefined until it is read from the store. */
  #samples: Float32Array | undefined;
  /** Corrections being typed, by segment id. */
  readonly #typed = new Map<number, string>();
  #abort: AbortController | undefined;

  constructor(data: TranscriptData, samples?: Float32Array) {
    ({ id: this.id, created: this.created, name: this.name } = data);
    this.levels = signal(data.levels);
    this.duration = signal(data.duration);
    this.segments = signal(data.segments);
    this.status = signal(data.status);
    this.failure = signal(data.failure);
    this.work = signal(data.work);
    this.#samples = samples;
  }

  data(): TranscriptData {
    const { id, created, name } = this;
    const failure = this.failure.peek();
    return {
      ...{ id, created, name },
      duration: this.duration.peek(),
      levels: this.levels.peek(),
      status: this.status.peek(),
      segments: withTexts(this.segments.peek(), this.#typed),
      work: this.work.peek(),
      ...(failure && { failure }),
    };
  }

  /** Returns the recording at 16 kHz. */
  async sound(app: Services): Promise<Float32Array> {
    this.#samples ??= await app.work.sound(this.id);
    return this.#samples;
  }

  /** Whether the recording was transcribed in this tab, or is: another tab's run cannot be stopped from here. */
  get isHere(): boolean {
    return this.#abort !== undefined;
  }

  /** Transcribes the recording, replacing a run in progress; calls `changed` when there is more text. Never rejects. */
  async run(app: Services, changed: () => void): Promise<void> {
    this.stop();
    const abort = new AbortController();
    this.#abort = abort;
    const { prompt } = app.settings.data.peek().transcription;
    let started = performance.now();
    batch(() => {
      this.#typed.clear();
      this.segments.value = [];
      this.failure.value = undefined;
      this.status.value = 'hearing';
    });
    changed();
    app.announcer.say('Transcribing');
    try {
      const samples = await this.sound(app);
      const engine = await app.engine('transcription', abort.signal);
      // The model's languages may have been unknown before it was loaded.
      const { language } = app.choices;
      const request = { samples, timestamps: 'segment', ...(language && { language }), ...(prompt && { prompt }) } as const;
      // The time to load the model is not counted.
      started = performance.now();
      for await (const event of transcribeInPieces(engine, request, abort.signal)) {
        if (event.type !== 'segment') continue;
        this.segments.value = [...this.segments.peek(), event.segment];
        changed();
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

  /** Takes a correction that is being typed. It is stored at once; `segments` has it from `settle` on, until then its element shows it. */
  correct(app: Services, { id }: TranscriptSegment, text: string): void {
    this.#typed.set(id, text);
    const correction = new Map([[id, text]]);
    // Edits only this segment: another tab may be correcting another one.
    void app.work.edit<TranscriptData>('transcript', this.data(), (stored) => ({
      ...stored,
      segments: withTexts(stored.segments, correction),
    }));
  }

  /** Makes typed corrections part of `segments`. */
  settle(): void {
    if (this.#typed.size === 0) return;
    this.segments.value = withTexts(this.segments.peek(), this.#typed);
    this.#typed.clear();
  }
}

const withTexts = (segments: readonly TranscriptSegment[], texts: ReadonlyMap<number, string>): readonly TranscriptSegment[] =>
  texts.size === 0 ? segments : segments.map((segment) => ({ ...segment, text: texts.get(segment.id) ?? segment.text }));
