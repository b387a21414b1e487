/** A take: one text spoken once, while it is made and afterwards. */
import { signal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import { concatenated } from '../../../engine/util/math.ts';
import type { Services } from '../services.ts';
import { PeakMeter } from '../audio/peaks.ts';
import { isAbort, toFailure } from '../failure.ts';
import type { Failure } from '../failure.ts';
import { hasAllFields, hasFields } from '../storage/stored-fields.ts';
import type { Fields } from '../storage/stored-fields.ts';
import type { WorkData } from '../storage/work-store.ts';

export interface SpokenPart {
  readonly text: string;
  /** Start of the part's sound, in seconds. */
  readonly start: number;
  readonly end: number;
}

export type TakeStatus = 'making' | 'done' | 'stopped' | 'failed';

/** Plain data of a take as stored, without its sound. */
export interface TakeData extends WorkData {
  readonly text: string;
  readonly voice: string;
  readonly speed: number;
  readonly status: TakeStatus;
  /** Sample rate, in Hz. */
  readonly rate: number;
  /** Duration of the sound, in seconds. */
  readonly seconds: number;
  /** Seconds until the first sound, and until all of it, without loading the model. */
  readonly firstSound: number;
  readonly work: number;
  readonly parts: readonly SpokenPart[];
  readonly levels: Float32Array;
  readonly seed?: number;
  readonly failure?: Failure;
}

/** Returns the data of a take that has no sound yet. */
export function emptyTake(id: string, text: string, voice: string, speed: number): TakeData {
  const nothing = { rate: 24000, seconds: 0, firstSound: 0, work: 0, parts: [], levels: new Float32Array(0) };
  return { id, created: Date.now(), text, voice, speed, status: 'making', ...nothing };
}

const FIELDS: Fields = {
  ...({ id: 'string', created: 'number', text: 'string', voice: 'string', speed: 'number', status: 'string' } as const),
  ...({ rate: 'number', seconds: 'number', firstSound: 'number', work: 'number' } as const),
};

/** Whether a record is as this version of the page stores a take. */
export const isReadableTake = (stored: TakeData): boolean =>
  hasFields(stored, FIELDS) &&
  stored.levels instanceof Float32Array &&
  hasAllFields(stored.parts, { text: 'string', start: 'number', end: 'number' }) &&
  (stored.seed === undefined || typeof stored.seed === 'number') &&
  (stored.failure === undefined || hasFields(stored.failure, { message: 'string' }));

/** Gets a take's sound while it is made. */
export interface TakeListener {
  start(rate: number): void;
  append(samples: Float32Array): void;
  /** The take's data has changed. */
  changed(): void;
  finish(): void;
}

export class Take {
  readonly id: string;
  readonly created: number;
  readonly text: string;
  voice: string;
  readonly speed: number;
  readonly seed: Signal<number | undefined>;
  readonly status: Signal<TakeStatus>;
  readonly failure: Signal<Failure | undefined>;
  readonly parts: Signal<readonly SpokenPart[]>;
  readonly levels: Signal<Float32Array>;
  readonly seconds: Signal<number>;
  readonly firstSound: Signal<number>;
  readonly work: Signal<number>;
  rate: number;
  /** Its sound, in pieces until it is asked for; undefined until it is made or read from the store. */
  #pieces: Float32Array[] | undefined;

  constructor(data: TakeData) {
    ({ id: this.id, created: this.created, text: this.text, voice: this.voice, speed: this.speed, rate: this.rate } = data);
    this.seed = signal(data.seed);
    this.status = signal(data.status);
    this.failure = signal(data.failure);
    this.parts = signal(data.parts);
    this.levels = signal(data.levels);
    this.seconds = signal(data.seconds);
    this.firstSound = signal(data.firstSound);
    this.work = signal(data.work);
  }

  data(): TakeData {
    const { id, created, text, voice, speed, rate } = this;
    const [seed, failure] = [this.seed.peek(), this.failure.peek()];
    return {
      ...{ id, created, text, voice, speed, rate },
      status: this.status.peek(),
      seconds: this.seconds.peek(),
      firstSound: this.firstSound.peek(),
      work: this.work.peek(),
      parts: this.parts.peek(),
      levels: this.levels.peek(),
      ...(seed !== undefined && { seed }),
      ...(failure && { failure }),
    };
  }

  /** Returns all samples so far. */
  async sound(app: Services): Promise<Float32Array> {
    this.#pieces ??= [await app.work.sound(this.id)];
    if (this.#pieces.length !== 1) this.#pieces = [concatenated(this.#pieces)];
    return this.#pieces[0]!;
  }

  /** Synthesises the sound and stores each piece, until all are stored; `listener` gets it meanwhile. Never rejects. */
  async make(app: Services, listener: TakeListener, seed: number | undefined, abort: AbortSignal): Promise<void> {
    let started = performance.now();
    const elapsed = (): number => (performance.now() - started) / 1000;
    const storing: Promise<void>[] = [];
    const meter = new PeakMeter();
    this.#pieces = [];
    app.announcer.say('Making speech');
    try {
      const engine = await app.engine('speech', abort);
      // The time to load the model is not counted.
      started = performance.now();
      // The model's voices may have been unknown before it was loaded.
      this.voice = app.choices.voice;
      const request = { text: this.text, voice: this.voice, speed: this.speed, ...(seed !== undefined && { seed }) };
      for await (const event of engine.synthesize(request, abort)) {
        if (event.type === 'start') {
          this.rate = event.sampleRate;
          this.seed.value = event.seed;
          listener.start(event.sampleRate);
        } else if (event.type === 'audio') {
          this.firstSound.value ||= elapsed();
          // Its own buffer: of a view, the store would keep all that is behind it.
          const samples = event.samples.slice();
          listener.append(samples);
          this.#append(samples, event.text, meter);
          storing.push(app.work.putSound(this.id, storing.length, samples));
          listener.changed();
        }
      }
      this.status.value = 'done';
      app.announcer.say(`Speech complete, ${this.seconds.peek().toFixed(1)} seconds`);
    } catch (error) {
      this.status.value = isAbort(error) ? 'stopped' : 'failed';
      if (!isAbort(error)) this.failure.value = toFailure(error);
    } finally {
      this.work.value = elapsed();
      listener.finish();
    }
    await Promise.all(storing);
  }

  #append(samples: Float32Array, text: string, meter: PeakMeter): void {
    this.#pieces!.push(samples);
    meter.push(samples);
    const start = this.seconds.peek();
    const end = start + samples.length / this.rate;
    const parts = this.parts.peek();
    const last = parts.at(-1);
    // A sentence may come in several chunks.
    this.parts.value = last?.text === text ? [...parts.slice(0, -1), { ...last, end }] : [...parts, { text, start, end }];
    this.seconds.value = end;
    this.levels.value = meter.levels();
  }
}
