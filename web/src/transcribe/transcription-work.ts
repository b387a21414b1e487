/**
 * State and work of the transcribe view, which continue while another view is open: the recordings, the running transcription, the player.
 */
import { computed, effect, signal } from '@preact/signals';
import type { Services } from '../services.ts';
import { CAPTURE_RATE } from '../audio/microphone.ts';
import { peaksOf } from '../audio/peaks.ts';
import { Player } from '../audio/player.ts';
import { isAbort } from '../failure.ts';
import { WorkList } from '../storage/work-list.ts';
import { messageOf, newId } from '../util.ts';
import { Reading } from './reading.tsx';
import { Transcript, isReadableTranscript } from './transcript.ts';
import type { TranscriptData } from './transcript.ts';

/** Seconds per stored piece of a recording. */
const KEPT_SECONDS = 60;

export class TranscriptionWork {
  readonly transcripts: WorkList<TranscriptData, Transcript>;
  readonly player = new Player();
  /** The file that is being decoded. */
  readonly reading = signal<Reading | undefined>(undefined);
  /** Files that are decoded and transcribed after it, in this order. */
  readonly waiting = signal<readonly File[]>([]);
  /** Why the last recordings could not be accepted, for people; else empty. */
  readonly problem = signal('');
  /** The transcript that is open: the chosen one, else the newest, which becomes the chosen one once it is shown. */
  readonly current = computed(() => {
    const items = this.transcripts.items.value;
    return items.find(({ id }) => id === this.#chosen.value) ?? items[0];
  });
  readonly #chosen = signal('');
  #calls = 0;
  /** Number of microphone recordings so far. */
  #recordings = 0;
  /** Id of the recording that the player holds. */
  #loaded = '';
  readonly #app: Services;

  constructor(app: Services) {
    this.#app = app;
    this.transcripts = new WorkList(app, {
      kind: 'transcript',
      isReadable: isReadableTranscript,
      isRunning: ({ status }) => status === 'hearing',
      revive: (data, isAlive) => new Transcript(data.status === 'hearing' && !isAlive ? { ...data, status: 'stopped' } : data),
      labelOf: ({ name }) => `transcript of ${name}`,
      leave: (transcript) => this.#leave(transcript),
    });
  }

  /**
   * Restores stored transcripts. The one that is open then stays open: another tab's newer recording must not replace it while it is in
   * use.
   */
  async restore(): Promise<void> {
    await this.transcripts.restore();
    effect(() => {
      const open = this.current.value;
      if (open && this.#chosen.value === '') this.#chosen.value = open.id;
    });
  }

  /**
   * Transcribes sound files one after the other. The first replaces the file that is being decoded or transcribed, and is shown, unless the
   * microphone was recorded while it was decoded; the others follow it, before files that were waiting already.
   */
  async open([first, ...others]: readonly File[]): Promise<void> {
    if (!first) return;
    const call = ++this.#calls;
    this.problem.value = '';
    this.waiting.value = [...others, ...this.waiting.peek()];
    this.reading.peek()?.cancel();
    await this.#take(first, true);
    // A later call takes over the waiting files.
    while (call === this.#calls) {
      const [next, ...rest] = this.waiting.peek();
      if (!next) break;
      this.waiting.value = rest;
      await this.#take(next, false);
    }
  }

  async #take(file: File, isFirst: boolean): Promise<void> {
    const reading = new Reading(file);
    const recordings = this.#recordings;
    this.reading.value = reading;
    const forget = (): void => void (this.reading.peek() === reading && (this.reading.value = undefined));
    try {
      const { samples, levels } = await reading.sound.finally(forget);
      if (samples.length === 0) throw new Error('there is no sound in it');
      // A recording is newer than the file that was opened before it.
      const isNewest = isFirst && recordings === this.#recordings;
      const transcript = isNewest ? this.#show(file.name, samples, levels) : this.#add(file.name, samples, levels);
      await this.run(transcript);
    } catch (error) {
      const problem = `${file.name}: ${messageOf(error)}`;
      if (!isAbort(error)) this.problem.value = [this.problem.peek(), problem].filter((text) => text !== '').join('; ');
    }
  }

  /** Shows and transcribes what the microphone recorded, at 16 kHz; a running transcription is stopped. */
  async hear(name: string, samples: Float32Array): Promise<void> {
    this.problem.value = samples.length === 0 ? 'There is no sound in it.' : '';
    if (samples.length === 0) return;
    this.#recordings++;
    await this.run(this.#show(name, samples, peaksOf(samples)));
  }

  /** Adds a recording and shows it. */
  #show(name: string, samples: Float32Array, levels: Float32Array): Transcript {
    this.current.peek()?.stop();
    const transcript = this.#add(name, samples, levels);
    this.player.load(samples, CAPTURE_RATE);
    this.#loaded = transcript.id;
    this.#chosen.value = transcript.id;
    return transcript;
  }

  #add(name: string, samples: Float32Array, levels: Float32Array): Transcript {
    const nothing = { status: 'idle', segments: [], work: 0 } as const;
    const duration = samples.length / CAPTURE_RATE;
    const transcript = new Transcript({ id: newId(), created: Date.now(), name, levels, duration, ...nothing }, samples);
    void this.#keep(transcript.id, samples);
    return transcript;
  }

  /** Transcribes a recording, perhaps again. */
  async run(transcript: Transcript): Promise<void> {
    await this.transcripts.run(transcript, () => transcript.run(this.#app, () => this.transcripts.save(transcript)));
  }

  choose(transcript: Transcript): void {
    this.#chosen.value = transcript.id;
    this.player.clear();
    this.#loaded = '';
  }

  /** Plays the open recording from a position, in seconds. */
  async play(transcript: Transcript, seconds: number): Promise<void> {
    if (this.#loaded !== transcript.id) this.player.clear();
    this.#loaded = transcript.id;
    this.player.unlock(CAPTURE_RATE);
    const isWanted = this.player.ask();
    const samples = await transcript.sound(this.#app);
    if (!isWanted()) return;
    if (this.player.duration.peek() === 0) this.player.load(samples, CAPTURE_RATE);
    this.player.playFrom(seconds);
  }

  remove(transcript: Transcript): void {
    this.transcripts.remove(transcript);
  }

  #leave(transcript: Transcript): void {
    transcript.stop();
    if (this.#loaded !== transcript.id) return;
    this.player.clear();
    this.#loaded = '';
  }

  /** Stores a recording piece by piece, because each is copied on the main thread; it may be deleted for good meanwhile. */
  async #keep(id: string, samples: Float32Array): Promise<void> {
    const size = KEPT_SECONDS * CAPTURE_RATE;
    for (let piece = 0; piece * size < samples.length; piece++) {
      await this.#app.work.putSound(id, piece, samples.slice(piece * size, (piece + 1) * size));
      // Another tab may have deleted it before that piece.
      if (this.transcripts.isPurged(id)) return this.#app.work.remove('transcript', id);
    }
  }
}
