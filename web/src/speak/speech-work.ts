/**
 * State and work of the speak view, which continue while another view is open: the text, the takes, the take that is being made, the
 * player.
 */
import { computed, signal } from '@preact/signals';
import type { Services } from '../services.ts';
import { Player } from '../audio/player.ts';
import { WorkList } from '../storage/work-list.ts';
import { newId, seedOf } from '../util.ts';
import { Take, emptyTake, isReadableTake } from './take.ts';
import type { TakeData } from './take.ts';

const EXAMPLE = 'The quick brown fox jumps over the lazy dog. Then it sits down by the river and waits for the evening.';

export class SpeechWork {
  readonly text = signal(EXAMPLE);
  readonly takes: WorkList<TakeData, Take>;
  readonly player = new Player();
  /** Id of the take that the player holds. */
  readonly currentId = signal('');
  /** The take that this tab is making. */
  readonly making = signal<Take | undefined>(undefined);
  readonly isMaking = computed(() => this.making.value?.status.value === 'making');
  readonly #app: Services;
  #abort = new AbortController();

  constructor(app: Services) {
    this.#app = app;
    this.takes = new WorkList(app, {
      kind: 'take',
      isReadable: isReadableTake,
      isRunning: ({ status }) => status === 'making',
      revive: (data, isAlive) => new Take(data.status === 'making' && !isAlive ? { ...data, status: 'stopped' } : data),
      labelOf: ({ voice }) => `take of ${voice}`,
      leave: (take) => this.#leave(take),
    });
    app.work.texts.keep(() => 'speak', this.text);
  }

  /** Makes a take of the text and plays it meanwhile. Must be called in a click or key handler. */
  make(): void {
    const { speed, seed } = this.#app.settings.data.peek().speech;
    const { voice } = this.#app.choices;
    this.player.unlock();
    // The player now belongs to this take; the sound before has no button any more.
    this.player.clear();
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    const take = new Take(emptyTake(newId(), this.text.peek().trim(), voice, speed));
    this.currentId.value = take.id;
    this.making.value = take;
    void this.takes.run(take, () => take.make(this.#app, this.#listener(take), seedOf(seed), signal));
  }

  /** Stops the take that is being made, and the sound; returns false when there was neither. */
  stop(): boolean {
    const wasBusy = this.isMaking.peek() || this.player.playing.peek();
    this.#abort.abort();
    this.player.pause();
    return wasBusy;
  }

  /** Plays a take from a position, in seconds. */
  async play(take: Take, seconds: number): Promise<void> {
    if (this.currentId.peek() !== take.id) this.player.clear();
    this.currentId.value = take.id;
    this.player.unlock(take.rate);
    const isWanted = this.player.ask();
    const samples = await take.sound(this.#app);
    if (!isWanted()) return;
    if (this.player.duration.peek() === 0) this.player.load(samples, take.rate);
    this.player.playFrom(seconds);
  }

  remove(take: Take): void {
    this.takes.remove(take);
  }

  #leave(take: Take): void {
    if (this.making.peek() === take) this.#abort.abort();
    if (this.currentId.peek() !== take.id) return;
    this.player.clear();
    this.currentId.value = '';
  }

  /** Passes a take's sound to the player as long as the player does not hold another take. */
  #listener(take: Take) {
    const isHeard = (): boolean => this.currentId.peek() === take.id;
    return {
      start: (rate: number): void => void (isHeard() && this.player.start(rate)),
      append: (samples: Float32Array): void => void (isHeard() && this.player.append(samples)),
      changed: (): void => this.takes.save(take),
      finish: (): void => void (isHeard() && this.player.finish()),
    };
  }
}
