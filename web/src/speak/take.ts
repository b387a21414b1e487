/** One text spoken once, while it is made and after. */
import { signal } from '@preact/signals';
import type { App } from '../app.ts';
import type { Player } from '../audio/player.ts';
import { isAbort, toFailure } from '../failure.ts';
import type { Failure } from '../failure.ts';
import { peaksOf } from '../audio/peaks.ts';
import { newId } from '../util.ts';

export interface SpokenPart {
  readonly text: string;
  /** Seconds. */
  readonly start: number;
  readonly end: number;
}

export class Take {
  readonly id = newId();
  readonly text: string;
  readonly voice: string;
  readonly speed: number;
  readonly seed = signal<number | undefined>(undefined);
  readonly status = signal<'making' | 'done' | 'stopped' | 'failed'>('making');
  readonly failure = signal<Failure | undefined>(undefined);
  readonly parts = signal<readonly SpokenPart[]>([]);
  readonly levels = signal<Float32Array>(new Float32Array(0));
  readonly seconds = signal(0);
  /** Seconds of work until the first sound, and for all of it. */
  readonly firstSound = signal(0);
  readonly work = signal(0);
  rate = 24000;
  #samples = new Float32Array(0);

  constructor(text: string, voice: string, speed: number) {
    this.text = text;
    this.voice = voice;
    this.speed = speed;
  }

  get samples(): Float32Array {
    return this.#samples;
  }

  /** Makes the sound; `player` plays it meanwhile. Never rejects. */
  async make(app: App, player: Player, seed: number | undefined, abort: AbortSignal): Promise<void> {
    let started = performance.now();
    const elapsed = (): number => (performance.now() - started) / 1000;
    app.announcer.say('Making speech');
    try {
      const engine = await app.engine('speech');
      // Loading the model is not part of the work.
      started = performance.now();
      const request = { text: this.text, voice: this.voice, speed: this.speed, ...(seed !== undefined && { seed }) };
      for await (const event of engine.synthesize(request, abort)) {
        if (event.type === 'start') {
          this.rate = event.sampleRate;
          this.seed.value = event.seed;
          player.start(event.sampleRate);
        } else if (event.type === 'audio') {
          this.firstSound.value ||= elapsed();
          player.append(event.samples.slice());
          this.#append(event.samples, event.text);
        }
      }
      this.status.value = 'done';
      app.announcer.say(`Speech complete, ${this.seconds.peek().toFixed(1)} seconds`);
    } catch (error) {
      this.status.value = isAbort(error) ? 'stopped' : 'failed';
      if (!isAbort(error)) this.failure.value = toFailure(error);
    } finally {
      this.work.value = elapsed();
      player.finish();
    }
  }

  #append(samples: Float32Array, text: string): void {
    const whole = new Float32Array(this.#samples.length + samples.length);
    whole.set(this.#samples);
    whole.set(samples, this.#samples.length);
    const start = this.#samples.length / this.rate;
    this.#samples = whole;
    const end = whole.length / this.rate;
    const last = this.parts.peek().at(-1);
    const parts = this.parts.peek();
    // A sentence may come in several chunks.
    this.parts.value = last?.text === text ? [...parts.slice(0, -1), { ...last, end }] : [...parts, { text, start, end }];
    this.seconds.value = end;
    this.levels.value = peaksOf(whole);
  }
}
