/**
 * The voice loop: microphone -> transcription -> chat -> speech, where each sentence is spoken while the next is written. Talking again
 * interrupts it. Every path ends in `idle`.
 */
import { signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';
import type { Services } from '../services.ts';
import { CAPTURE_RATE, Microphone, rms } from '../audio/microphone.ts';
import { Player } from '../audio/player.ts';
import type { Conversation, Message } from '../chat/conversation.ts';
import { isAbort } from '../failure.ts';
import { messageOf } from '../util.ts';
import { SentenceSplitter, speakable } from './sentences.ts';

export type VoicePhase = 'idle' | 'starting' | 'listening' | 'transcribing' | 'answering' | 'speaking';

const SHORTEST_RECORDING = 0.25; // s
const SILENCE = 0.001; // RMS: -60 dBFS

export class VoiceLoop {
  readonly phase = signal<VoicePhase>('idle');
  readonly problem = signal('');
  /** Id of the message that is being spoken. */
  readonly speakingId = signal('');
  readonly levels: ReadonlySignal<readonly number[]>;
  /** Length of the recording, in seconds. */
  readonly seconds: ReadonlySignal<number>;
  readonly #app: Services;
  readonly #microphone = new Microphone();
  readonly player = new Player();
  #opening: Promise<void> | undefined;
  #abort = new AbortController();
  #conversation: Conversation | undefined;
  /** The conversation that is talked in, and in it the message that is being spoken, or will be once it is written. */
  readonly #heard = signal<{ readonly conversation: Conversation; readonly id?: string } | undefined>(undefined);

  constructor(app: Services) {
    this.#app = app;
    this.levels = this.#microphone.levels;
    this.seconds = this.#microphone.seconds;
  }

  /** Whether there is anything that `cancel` would stop. */
  get busy(): boolean {
    return this.phase.peek() !== 'idle' || this.speakingId.peek() !== '';
  }

  /** Opens the microphone; stops speech and answers in progress. */
  async listen(): Promise<void> {
    this.cancel();
    this.player.unlock();
    this.problem.value = '';
    this.phase.value = 'starting';
    this.#opening = this.#microphone.start(this.#app.settings.data.peek().microphone, (why) => {
      this.cancel();
      this.problem.value = `${why} Nothing of it was sent.`;
    });
    try {
      await this.#opening;
      if (this.phase.peek() === 'starting') this.phase.value = 'listening';
    } catch (error) {
      // What stopped it decides what follows.
      if (!isAbort(error)) this.#fail(messageOf(error));
    }
  }

  /** Closes the microphone, and sends what was said as a question. */
  async finish(conversation: Conversation): Promise<void> {
    if (this.phase.peek() !== 'starting' && this.phase.peek() !== 'listening') return;
    const { signal } = this.#abort;
    await this.#opening?.catch(() => undefined);
    // The microphone may not have opened, or it was stopped, or another press has finished it.
    if (signal.aborted || this.phase.peek() !== 'listening') return;
    this.phase.value = 'transcribing';
    this.#heard.value = { conversation };
    const samples = await this.#microphone.stop();
    if (signal.aborted) return;
    if (samples.length < SHORTEST_RECORDING * CAPTURE_RATE || rms(samples) < SILENCE)
      return this.#fail('Nothing was heard. Hold the button while you talk.');
    try {
      const text = await this.#transcribe(samples, signal);
      if (signal.aborted) return;
      if (text === '') return this.#fail('No words were found in what was said.');
      await this.#answer(conversation, text, signal);
    } catch (error) {
      if (!isAbort(error) && !signal.aborted) this.#fail(messageOf(error));
    }
  }

  /** Reads a finished message aloud. */
  async speak(message: Message, conversation: Conversation): Promise<void> {
    this.cancel();
    this.player.unlock();
    this.speakingId.value = message.id;
    this.#heard.value = { conversation, id: message.id };
    const splitter = new SentenceSplitter();
    const sentences = [...splitter.push(message.text.peek()), ...splitter.flush()];
    await this.#speakAll(sentences, this.#abort.signal);
  }

  /** Stops everything: microphone, answer, sound. */
  cancel(): void {
    this.#abort.abort();
    this.#abort = new AbortController();
    if (this.phase.peek() === 'listening' || this.phase.peek() === 'starting') void this.#microphone.stop();
    this.#conversation?.stop();
    this.#conversation = undefined;
    this.#heard.value = undefined;
    this.player.clear();
    this.speakingId.value = '';
    this.phase.value = 'idle';
  }

  /** Stops the sound; an answer continues to be written. */
  hush(): void {
    this.#conversation = undefined;
    this.cancel();
  }

  /**
   * Stops speaking a message that is in none of these conversations any more, because its stop button is gone too, and drops what was said
   * in a conversation that is gone: the question would bring it back. Reads signals, so an effect that calls this runs again at every
   * change.
   */
  keepTo(conversations: readonly Conversation[]): void {
    const heard = this.#heard.value;
    if (!heard) return;
    const { conversation, id } = heard;
    const isThere = conversations.includes(conversation);
    if (!isThere || (id !== undefined && conversation.messages.value.every((message) => message.id !== id))) this.hush();
  }

  /**
   * Closes the microphone when the view is left, because nothing would show any more that it is open. A question that is already complete
   * is answered all the same.
   */
  leave(): void {
    if (this.phase.peek() === 'listening' || this.phase.peek() === 'starting') this.cancel();
  }

  async #transcribe(samples: Float32Array, signal: AbortSignal): Promise<string> {
    const engine = await this.#app.engine('transcription', signal);
    let text = '';
    for await (const event of engine.transcribe({ samples, timestamps: 'none', temperature: 0 }, signal)) {
      if (event.type === 'finish') text = event.text.trim();
    }
    return text;
  }

  async #answer(conversation: Conversation, text: string, signal: AbortSignal): Promise<void> {
    this.phase.value = 'answering';
    this.#conversation = conversation;
    const splitter = new SentenceSplitter();
    const queue = new SentenceQueue();
    const spoken = this.#speakAll(queue, signal);
    const written = conversation.send(text, (event) => {
      for (const sentence of event.type === 'text' ? splitter.push(event.text) : splitter.flush()) queue.add(sentence);
      if (event.type === 'end') queue.end();
    });
    const answer = conversation.messages.peek().at(-1)!;
    this.#heard.value = { conversation, id: answer.id };
    this.speakingId.value = answer.id;
    await written;
    if (signal.aborted) return;
    this.#conversation = undefined;
    // An answer that the person stops is not to be read on.
    if (answer.status.peek() === 'stopped') this.hush();
    await spoken;
  }

  /** Synthesises sentence after sentence into one sound, and waits until it has been played. */
  async #speakAll(sentences: Iterable<string> | AsyncIterable<string>, signal: AbortSignal): Promise<void> {
    const { speed } = this.#app.settings.data.peek().speech;
    let started = false;
    try {
      for await (const sentence of sentences) {
        const text = speakable(sentence);
        if (text === '') continue;
        const engine = await this.#app.engine('speech', signal);
        const { voice } = this.#app.choices;
        for await (const event of engine.synthesize({ text, voice, speed }, signal)) {
          if (signal.aborted) return;
          if (event.type === 'start' && !started) {
            started = true;
            this.player.start(event.sampleRate);
            this.phase.value = 'speaking';
          } else if (event.type === 'audio') this.player.append(event.samples);
        }
      }
    } catch (error) {
      if (!isAbort(error) && !signal.aborted) this.problem.value = `It cannot be spoken: ${messageOf(error)}`;
    }
    if (signal.aborted) return;
    // Also after a failure: what has been synthesised is played, and the player must not wait for more.
    this.player.finish();
    if (started) await this.player.drained();
    if (signal.aborted) return;
    this.phase.value = 'idle';
    this.speakingId.value = '';
    this.#heard.value = undefined;
  }

  #fail(problem: string): void {
    this.phase.value = 'idle';
    this.#heard.value = undefined;
    this.problem.value = problem;
  }
}

/** A queue of sentences, for one reader. */
class SentenceQueue implements AsyncIterable<string> {
  readonly #items: string[] = [];
  #ended = false;
  #wake: (() => void) | undefined;

  add(sentence: string): void {
    this.#items.push(sentence);
    this.#wake?.();
  }

  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) yield item;
      else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
