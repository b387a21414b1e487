/**
 * Plays mono sound that may still be growing. Chunks are scheduled on the audio clock one after the other, so they join without gaps; when
 * the source is slower than playback, playback waits for more and goes on.
 */
import { signal } from '@preact/signals';

/** A chunk scheduled at `at` (seconds of context time), which begins `offset` seconds into the sound. */
interface Scheduled {
  readonly at: number;
  readonly offset: number;
  readonly seconds: number;
  readonly source: AudioBufferSourceNode;
}

const LEAD = 0.08; // s before the first sample, so that it is never late
const AHEAD = 20; // s of sound that are scheduled ahead
const LONGEST = 10; // s per buffer, because making one blocks the main thread
const FADE = 0.02; // s of fade when playback is stopped, against clicks

export class Player {
  readonly playing = signal(false);
  /** Playback position, in seconds from the beginning of the sound. */
  readonly position = signal(0);
  readonly duration = signal(0);
  /** Whether the browser waits for a click before it plays sound. */
  readonly blocked = signal(false);
  readonly #chunks: Float32Array[] = [];
  #context: AudioContext | undefined;
  #gain: GainNode | undefined;
  #rate = 24000;
  #scheduled: Scheduled[] = [];
  /** The chunk to schedule next, and how many of its first samples to skip. */
  #next = { chunk: 0, skip: 0 };
  #ended = true;
  #frame = 0;
  #drained: (() => void) | undefined;
  /** Number of requests to the player, by which `ask` detects newer ones. */
  #asked = 0;

  /** Unlocks audio for later; must be called in a click or key handler. */
  unlock(rate = this.#rate): void {
    if (this.#context?.sampleRate !== rate) {
      void this.#context?.close();
      // At the sound's own rate, so that the browser resamples the whole and not each chunk.
      this.#context = new AudioContext({ sampleRate: rate });
      this.#gain = this.#context.createGain();
      this.#gain.connect(this.#context.destination);
    }
    void this.#context.resume();
  }

  /** Begins an empty sound of `rate` Hz, which is played while it grows. */
  start(rate: number): void {
    this.clear();
    this.#rate = rate;
    this.#ended = false;
    this.unlock(rate);
    this.#play();
  }

  append(samples: Float32Array): void {
    const most = LONGEST * this.#rate;
    for (let at = 0; at < samples.length; at += most) this.#chunks.push(samples.subarray(at, at + most));
    this.duration.value = this.duration.peek() + samples.length / this.#rate;
    if (this.playing.peek()) this.#fill();
  }

  /** Marks the sound as complete: nothing more will be appended. */
  finish(): void {
    this.#ended = true;
    if (!this.playing.peek()) this.#resolveDrained();
  }

  /** Loads a finished sound of `rate` Hz, without playing it. */
  load(samples: Float32Array, rate: number): void {
    this.clear();
    this.#rate = rate;
    this.append(samples);
    this.finish();
  }

  /** Begins a request whose sound must be read first; the returned function tells whether it is still the player's latest request. */
  ask(): () => boolean {
    const asked = ++this.#asked;
    return () => asked === this.#asked;
  }

  /** Plays from `seconds` on. */
  playFrom(seconds: number): void {
    this.pause();
    this.unlock(this.#rate);
    this.#next = this.#find(Math.floor(Math.min(seconds, this.duration.peek()) * this.#rate));
    this.position.value = Math.min(seconds, this.duration.peek());
    this.#play();
  }

  pause(): void {
    this.#asked++;
    cancelAnimationFrame(this.#frame);
    if (this.#context && this.#gain && this.#scheduled.length > 0) {
      const now = this.#context.currentTime;
      const faded = this.#gain;
      faded.gain.setTargetAtTime(0, now, FADE / 3);
      for (const { source } of this.#scheduled) source.stop(now + FADE);
      this.#gain = this.#context.createGain();
      this.#gain.connect(this.#context.destination);
    }
    this.#scheduled = [];
    this.playing.value = false;
  }

  /** Stops playback and discards the sound. */
  clear(): void {
    this.pause();
    this.#chunks.length = 0;
    this.#next = { chunk: 0, skip: 0 };
    this.#ended = true;
    this.position.value = 0;
    this.duration.value = 0;
    this.#resolveDrained();
  }

  /** Resolves when a finished sound has been played to its end, or was stopped. */
  drained(): Promise<void> {
    if (this.#ended && !this.playing.peek()) return Promise.resolve();
    return new Promise((resolve) => (this.#drained = resolve));
  }

  #play(): void {
    this.playing.value = true;
    const tick = (): void => {
      this.#frame = requestAnimationFrame(tick);
      this.#follow();
    };
    tick();
  }

  /** Finds the chunk that holds a sample. */
  #find(sample: number): { chunk: number; skip: number } {
    let skip = sample;
    let chunk = 0;
    for (; chunk < this.#chunks.length && skip >= this.#chunks[chunk]!.length; chunk++) skip -= this.#chunks[chunk]!.length;
    return { chunk, skip };
  }

  /** Schedules the chunks that will be heard soon. */
  #fill(): void {
    const now = this.#context!.currentTime;
    for (; this.#next.chunk < this.#chunks.length; this.#next = { chunk: this.#next.chunk + 1, skip: 0 }) {
      const last = this.#scheduled.at(-1);
      if (last && last.at + last.seconds > now + AHEAD) return;
      const { chunk, skip } = this.#next;
      this.#schedule(this.#chunks[chunk]!.subarray(skip), last ? last.offset + last.seconds : this.position.peek());
    }
  }

  #schedule(samples: Float32Array, offset: number): void {
    const context = this.#context!;
    const buffer = context.createBuffer(1, samples.length, this.#rate);
    buffer.copyToChannel(samples as Float32Array<ArrayBuffer>, 0);
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#gain!);
    const last = this.#scheduled.at(-1);
    const at = Math.max(context.currentTime + LEAD, last ? last.at + last.seconds : 0);
    source.start(at);
    // Frames stop in hidden tabs; the end of a chunk must be noticed there too.
    source.onended = () => this.#follow();
    this.#scheduled.push({ at, offset, seconds: samples.length / this.#rate, source });
  }

  /** Updates the position, schedules further chunks and notices the end. */
  #follow(): void {
    if (!this.#context || !this.playing.peek()) return;
    this.blocked.value = this.#context.state === 'suspended';
    const now = this.#context.currentTime;
    const current = this.#scheduled.findLast(({ at }) => at <= now);
    if (current) this.position.value = current.offset + Math.min(now - current.at, current.seconds);
    // The last entry stays, because the next chunk is scheduled behind it.
    this.#scheduled = this.#scheduled.filter((entry, index, all) => index === all.length - 1 || entry.at + entry.seconds > now - LEAD);
    this.#fill();
    const last = this.#scheduled.at(-1);
    const isOver = !last || now >= last.at + last.seconds;
    if (!this.#ended || !isOver) return;
    cancelAnimationFrame(this.#frame);
    this.#scheduled = [];
    this.playing.value = false;
    this.#resolveDrained();
  }

  #resolveDrained(): void {
    this.#drained?.();
    this.#drained = undefined;
  }
}
