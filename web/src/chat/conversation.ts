/** One conversation and the answer that is being written in it. */
import { batch, signal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import type { ChatMessage, FinishReason } from '../../../engine/api.ts';
import type { App } from '../app.ts';
import { isAbort, toFailure } from '../failure.ts';
import type { Failure } from '../failure.ts';
import { TextPacer } from '../ui/text-pacer.ts';
import { newId } from '../util.ts';
import { speakable } from '../voice/sentences.ts';
import { AnswerMeter } from './answer-meter.ts';
import { promptOf } from './prompt.ts';
import { samplingOf, titleOf } from './sampling.ts';

export type MessageStatus = 'waiting' | 'writing' | 'done' | 'stopped' | 'failed';

/** What is measured about an answer. */
export interface AnswerStats {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  /** ms from sending to the first text. */
  readonly firstTokenMs: number;
  /** Tokens a second after the first. */
  readonly rate: number;
  readonly reason: FinishReason;
}

/** Plain data of a message: what is stored and exported. */
export interface MessageData {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly text: string;
  readonly status: MessageStatus;
  readonly stats?: AnswerStats;
}

export interface ConversationData {
  readonly id: string;
  readonly title: string;
  readonly created: number;
  readonly updated: number;
  readonly system: string;
  readonly messages: readonly MessageData[];
}

export class Message {
  readonly id: string;
  readonly role: MessageData['role'];
  readonly text: Signal<string>;
  readonly status: Signal<MessageStatus>;
  readonly stats: Signal<AnswerStats | undefined>;
  readonly failure: Signal<Failure | undefined> = signal(undefined);

  constructor({ id, role, text, status, stats }: MessageData) {
    this.id = id;
    this.role = role;
    this.text = signal(text);
    // A page that was closed while it wrote left a stopped answer.
    this.status = signal(status === 'waiting' || status === 'writing' ? 'stopped' : status);
    this.stats = signal(stats);
  }

  data(): MessageData {
    const stats = this.stats.peek();
    return { id: this.id, role: this.role, text: this.text.peek(), status: this.status.peek(), ...(stats && { stats }) };
  }
}

/** Hears an answer while it is written (the voice loop speaks it). */
export type AnswerListener = (event: { readonly type: 'text'; readonly text: string } | { readonly type: 'end' }) => void;

export class Conversation {
  readonly id: string;
  readonly created: number;
  updated: number;
  readonly title: Signal<string>;
  readonly system: Signal<string>;
  readonly messages: Signal<readonly Message[]>;
  readonly running = signal(false);
  /** Text that the person has typed and not sent. */
  readonly draft = signal('');
  readonly #app: App;
  #abort: AbortController | undefined;

  constructor(app: App, data: ConversationData) {
    this.#app = app;
    this.id = data.id;
    this.created = data.created;
    this.updated = data.updated;
    this.title = signal(data.title);
    this.system = signal(data.system);
    this.messages = signal(data.messages.map((message) => new Message(message)));
  }

  data(): ConversationData {
    const { id, created, updated, title, system, messages } = this;
    return { id, created, updated, title: title.peek(), system: system.peek(), messages: messages.peek().map((message) => message.data()) };
  }

  /** Adds a question and answers it. */
  async send(text: string, listener?: AnswerListener): Promise<void> {
    if (this.messages.peek().length === 0 && this.title.peek() === '') this.title.value = titleOf(text);
    this.#append('user', text, 'done');
    await this.answer(listener);
  }

  /** Answers the last question; an answer that is there is replaced. */
  async answer(listener?: AnswerListener): Promise<void> {
    this.stop();
    const messages = this.messages.peek();
    if (messages.at(-1)?.role === 'assistant') this.messages.value = messages.slice(0, -1);
    const turns = this.messages.peek().map(({ role, text }) => ({ role, text: text.peek() }));
    const prompt = promptOf(turns, this.system.peek());
    const message = this.#append('assistant', '', 'waiting');
    const abort = new AbortController();
    this.#abort = abort;
    this.running.value = true;
    this.#app.announcer.say('Answering');
    try {
      await this.#generate(prompt, message, abort.signal, listener);
      const text = message.text.peek();
      const { readAnswers } = this.#app.settings.data.peek();
      this.#app.announcer.say(readAnswers ? speakable(text) : `Answer complete, ${text.split(/\s+/).length} words`);
    } catch (error) {
      const stopped = isAbort(error) || abort.signal.aborted;
      message.status.value = stopped ? 'stopped' : 'failed';
      if (!stopped) message.failure.value = toFailure(error);
      this.#app.announcer.say(stopped ? 'Stopped' : 'The answer failed');
    } finally {
      if (this.#abort === abort) {
        this.#abort = undefined;
        this.running.value = false;
      }
      listener?.({ type: 'end' });
      this.save();
    }
  }

  stop(): void {
    this.#abort?.abort();
  }

  /** Replaces a question and drops what followed it. */
  async edit(message: Message, text: string): Promise<void> {
    this.stop();
    const at = this.messages.peek().indexOf(message);
    this.messages.value = this.messages.peek().slice(0, at);
    await this.send(text);
  }

  save(): void {
    this.updated = Date.now();
    this.#app.conversations.save(this);
  }

  #append(role: MessageData['role'], text: string, status: MessageStatus): Message {
    const message = new Message({ id: newId(), role, text, status: 'done' });
    message.status.value = status;
    this.messages.value = [...this.messages.peek(), message];
    this.save();
    return message;
  }

  async #generate(messages: ChatMessage[], message: Message, signal: AbortSignal, listener?: AnswerListener): Promise<void> {
    const request = { messages, ...samplingOf(this.#app.settings.data.peek().chat) };
    const engine = await this.#app.engine('chat');
    signal.throwIfAborted();
    const pacer = new TextPacer((text) => (message.text.value = text));
    const meter = new AnswerMeter();
    try {
      for await (const event of engine.chat(request, signal)) {
        meter.take(event);
        if (event.type !== 'delta') continue;
        if (message.status.peek() === 'waiting') message.status.value = 'writing';
        pacer.add(event.text);
        listener?.({ type: 'text', text: event.text });
      }
      batch(() => {
        pacer.flush();
        message.status.value = 'done';
      });
    } finally {
      pacer.flush();
      message.stats.value = meter.stats();
    }
  }
}
