/** What the transcribe view shows, and what goes on while another view is open: the recordings, the one that is heard, the sound. */
import { computed, signal } from '@preact/signals';
import type { App } from '../app.ts';
import { decodeAudio } from '../audio/decode.ts';
import { CAPTURE_RATE } from '../audio/microphone.ts';
import { Player } from '../audio/player.ts';
import { WorkList } from '../storage/work-list.ts';
import { peaksOf } from '../ui/trace.tsx';
import { newId } from '../util.ts';
import { Transcript } from './transcript.ts';
import type { TranscriptData } from './transcript.ts';

export class TranscriptionWork {
  readonly transcripts: WorkList<TranscriptData, Transcript>;
  readonly player = new Player();
  /** Why the last recording could not be taken. */
  readonly problem = signal('');
  /** The transcript that is open: the chosen one, else the newest. */
  readonly current = computed(() => {
    const items = this.transcripts.items.value;
    return items.find(({ id }) => id === this.#chosen.value) ?? items[0];
  });
  readonly #chosen = signal('');
  /** Id of the recording that the player holds. */
  #loaded = '';
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
    this.transcripts = new WorkList(app, {
      kind: 'transcript',
      isRunning: ({ status }) => status === 'hearing',
      revive: (data, isAlive) => new Transcript(data.status === 'hearing' && !isAlive ? { ...data, status: 'stopped' } : data),
      labelOf: ({ name }) => `transcript of ${name}`,
    });
  }

  /** Takes a file of sound and hears it. */
  async open(file: File): Promise<void> {
    this.problem.value = '';
    try {
      await this.hear(file.name, await decodeAudio(file));
    } catch (error) {
      this.problem.value = `${file.name}: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  /** Takes a recording at 16 kHz and hears it; the one that is being heard is stopped. */
  async hear(name: string, samples: Float32Array): Promise<void> {
    this.problem.value = samples.length === 0 ? 'There is no sound in it.' : '';
    if (samples.length === 0) return;
    this.current.peek()?.stop();
    const nothing = { status: 'idle', segments: [], work: 0 } as const;
    const [levels, duration] = [peaksOf(samples), samples.length / CAPTURE_RATE];
    const transcript = new Transcript({ id: newId(), created: Date.now(), name, levels, duration, ...nothing }, samples);
    void this.#app.work.putSound(transcript.id, 0, samples);
    this.player.load(samples, CAPTURE_RATE);
    this.#loaded = transcript.id;
    this.#chosen.value = transcript.id;
    await this.run(transcript);
  }

  /** Hears a recording, perhaps again. */
  async run(transcript: Transcript): Promise<void> {
    await this.transcripts.run(transcript, () => transcript.run(this.#app));
  }

  choose(transcript: Transcript): void {
    this.#chosen.value = transcript.id;
    this.player.clear();
    this.#loaded = '';
  }

  /** Plays the open recording from a place, seconds. */
  async play(transcript: Transcript, seconds: number): Promise<void> {
    this.player.unlock(CAPTURE_RATE);
    const samples = await transcript.sound(this.#app);
    if (this.#loaded !== transcript.id) this.player.load(samples, CAPTURE_RATE);
    this.#loaded = transcript.id;
    this.player.playFrom(seconds);
  }

  remove(transcript: Transcript): void {
    transcript.stop();
    if (this.#loaded === transcript.id) {
      this.player.clear();
      this.#loaded = '';
    }
    this.transcripts.remove(transcript);
  }
}
