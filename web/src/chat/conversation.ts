/** A conversation, and the answer that is being written in it. */
import { batch, signal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import type { ChatMessage } from '../../../engine/api.ts';
import { isAbort, toFailure } from '../failure.ts';
import type { Failure } from '../failure.ts';
import { TextPacer } from '../ui/text-pacer.ts';
import type { Services } from '../services.ts';
import { newId } from '../util.ts';
import { speakable } from '../voice/sentences.ts';
import { AnswerMeter } from './answer-meter.ts';
import type { AnswerStats, ConversationData, MessageData, MessageStatus } from './conversation-data.ts';
import { Pace } from './pace.ts';
import { promptOf } from './prompt.ts';
import { answerTo, append, chain, endOf, isUnfinished, takeOut, update } from './record.ts';
import type { Edit } from './record.ts';
import { samplingOf } from './sampling.ts';

export class Message {
  readonly id: string;
  readonly role: MessageData['role'];
  readonly text: Signal<string>;
  readonly thoughts: Signal<string>;
  readonly status: Signal<MessageStatus>;
  readonly stats: Signal<AnswerStats | undefined>;
  readonly failure: Signal<Failure | undefined>;

  constructor({ id, role, text, thoughts = '', status, stats, failure }: MessageData) {
    this.id = id;
    this.role = role;
    this.text = signal(text);
    this.thoughts = signal(thoughts);
    this.status = signal(status);
    this.stats = signal(stats);
    this.failure = signal(failure);
  }

  data(): MessageData {
    const [thoughts, stats, failure] = [this.thoughts.peek(), this.stats.peek(), this.failure.peek()];
    const { id, role, text, status } = this;
    return {
      ...{ id, role, text: text.peek(), status: status.peek() },
      ...(thoughts !== '' && { thoughts }),
      ...(stats && { stats }),
      ...(failure && { failure }),
    };
  }

  /** Takes over the stored state of the message. */
  take({ text, thoughts = '', status, stats, failure }: MessageData): void {
    this.text.value = text;
    this.thoughts.value = thoughts;
    this.status.value = status;
    this.stats.value = stats;
    this.failure.value = failure;
  }

  get isUnfinished(): boolean {
    return isUnfinished(this.status.peek());
  }
}

/** Gets an answer while it is written (the voice loop speaks it). */
export type AnswerListener = (event: { readonly type: 'text'; readonly text: string } | { readonly type: 'end' }) => void;

/** Stores edits of conversations. */
export interface EditStore {
  /**
   * Applies an edit to the stored conversation, or to `fallback` if it is not stored; returns the new stored state, undefined if the
   * browser refused.
   */
  store(fallback: ConversationData, edit: Edit): Promise<ConversationData | undefined>;
}

/** Least time between two saves of an answer that is being written, in ms. */
const SAVE_EVERY = 1000;

/**
 * The stored state of a conversation, plus this tab's edits that are not stored yet. Other tabs may edit the same conversation: an edit is
 * a function of the stored state, applied in one transaction and then announced to them.
 */
export class Conversation {
  readonly id: string;
  readonly title: Signal<string> = signal('');
  readonly system: Signal<string> = signal('');
  readonly messages: Signal<readonly Message[]> = signal([]);
  readonly running = signal(false);
  /** Text that is typed but not sent. */
  readonly draft = signal('');
  readonly #app: Services;
  readonly #store: EditStore;
  #stored: ConversationData;
  readonly #pending = new Set<Edit>();
  /** The pending edits that the browser refused to store, oldest first; they are stored together with the next one. */
  #refused: readonly Edit[] = [];
  /** Answers that this tab is writing, by id: their state here is newer than the store's. */
  readonly #own = new Map<string, Message>();
  /** Ids of answers that another tab is writing. */
  readonly #followed = new Set<string>();
  #abort: AbortController | undefined;
  /** The system prompt that is being typed, until it is stored. */
  #typed: string | undefined;

  constructor(app: Services, store: EditStore, data: ConversationData) {
    this.#app = app;
    this.#store = store;
    this.id = data.id;
    this.#stored = data;
    this.#show();
  }

  get updated(): number {
    return this.#stored.updated;
  }

  data(): ConversationData {
    const { removed: _, ...stored } = this.#stored;
    const messages = this.messages.peek().map((message) => message.data());
    return { ...stored, title: this.title.peek(), system: this.system.peek(), messages };
  }

  /** Adds a question and writes its answer. */
  async send(text: string, listener?: AnswerListener): Promise<void> {
    this.stop();
    await this.#ask(text, [], listener);
  }

  /** Answers the last question, replacing an answer that exists. */
  async answer(listener?: AnswerListener): Promise<void> {
    this.stop();
    const messages = this.messages.peek();
    const last = messages.at(-1);
    const question = messages.findLast(({ role }) => role === 'user');
    const message = newMessage('assistant', '', 'waiting');
    const place = question ? answerTo(question.id, message.data()) : append(message.data());
    await this.#write(message, last?.role === 'assistant' ? chain(takeOut(last.id), place) : place, listener);
  }

  stop(): void {
    this.#abort?.abort();
  }

  /** Replaces a question and drops what followed it. */
  async edit(message: Message, text: string): Promise<void> {
    this.stop();
    const messages = this.messages.peek();
    const dropped = messages.slice(messages.indexOf(message)).map(({ id }) => id);
    await this.#ask(text, dropped);
  }

  /** Stores the system prompt while it is typed, one edit at a time; what is typed meanwhile goes into the next. */
  async setSystem(typed: string): Promise<void> {
    const isKeeping = this.#typed !== undefined;
    this.#typed = typed;
    this.system.value = typed;
    if (isKeeping) return;
    for (let kept: string | undefined; kept !== this.#typed;) {
      const system = (kept = this.#typed);
      await this.change((record) => ({ ...record, system }));
    }
    this.#typed = undefined;
  }

  /** Applies an edit: shows it at once, then stores it. Never rejects. */
  async change(edit: Edit): Promise<void> {
    await this.#stage(edit)();
  }

  /** Takes over the state that another tab has stored. */
  adopt(stored: ConversationData): void {
    this.#stored = stored;
    this.#show();
  }

  async #ask(text: string, dropped: readonly string[], listener?: AnswerListener): Promise<void> {
    const answer = newMessage('assistant', '', 'waiting');
    const turn = append(newMessage('user', text, 'done').data(), answer.data());
    await this.#write(answer, chain(takeOut(...dropped), turn), listener);
  }

  /** Shows an edit; the returned function stores it. */
  #stage(edit: Edit): () => Promise<void> {
    const dated: Edit = (record) => {
      const edited = edit(record);
      return edited === record ? record : { ...edited, updated: Date.now() };
    };
    this.#pending.add(dated);
    this.#show();
    return async () => {
      const edits = [...this.#refused, dated];
      this.#refused = [];
      const stored = await this.#store.store(this.#stored, chain(...edits));
      if (stored) {
        this.#stored = stored;
        for (const kept of edits) this.#pending.delete(kept);
      } else this.#refused = [...edits, ...this.#refused];
      this.#show();
    };
  }

  #show(): void {
    const record = chain(...this.#pending)(this.#stored);
    const shown = this.messages.peek();
    const known = new Map(shown.map((message) => [message.id, message]));
    const messages = record.messages.map((data) => {
      const own = this.#own.get(data.id);
      if (own) return own;
      const message = known.get(data.id) ?? new Message(data);
      message.take(data);
      return message;
    });
    batch(() => {
      this.title.value = record.title;
      this.system.value = this.#typed ?? record.system;
      if (messages.length !== shown.length || messages.some((message, at) => message !== shown[at])) this.messages.value = messages;
    });
    for (const message of messages) if (message.isUnfinished && !this.#own.has(message.id)) void this.#follow(message);
  }

  /** Waits for the end of an answer that another tab writes; if that tab is closed, the answer counts as stopped. */
  async #follow({ id }: Message): Promise<void> {
    if (this.#followed.has(id)) return;
    this.#followed.add(id);
    await this.#app.tabs.released(id);
    this.#followed.delete(id);
    await this.change(endOf(id));
  }

  /** Writes an answer: `edit` puts it into the conversation, then it is generated to its end. */
  async #write(message: Message, edit: Edit, listener?: AnswerListener): Promise<void> {
    const abort = new AbortController();
    this.#abort = abort;
    this.running.value = true;
    this.#own.set(message.id, message);
    const store = this.#stage(edit);
    this.#app.announcer.say('Answering');
    await this.#app.tabs.hold(message.id, async () => {
      await store();
      await this.#generateOrFail(message, abort.signal, listener);
      if (this.#abort === abort) {
        this.#abort = undefined;
        this.running.value = false;
      }
      listener?.({ type: 'end' });
      await this.change(update(message.data()));
      this.#own.delete(message.id);
    });
  }

  async #generateOrFail(message: Message, signal: AbortSignal, listener?: AnswerListener): Promise<void> {
    try {
      await this.#generate(message, signal, listener);
      const text = message.text.peek();
      const { readAnswers } = this.#app.settings.data.peek();
      this.#app.announcer.say(readAnswers ? speakable(text) : `Answer complete, ${text.match(/\S+/g)?.length ?? 0} words`);
    } catch (error) {
      const stopped = isAbort(error) || signal.aborted;
      message.status.value = stopped ? 'stopped' : 'failed';
      if (!stopped) message.failure.value = toFailure(error);
      this.#app.announcer.say(stopped ? 'Stopped' : 'The answer failed');
    }
  }

  /** The prompt for an answer: all turns before it, those of other tabs included. */
  #prompt(answer: Message): ChatMessage[] {
    const messages = this.messages.peek();
    const before = messages.slice(0, messages.indexOf(answer));
    return promptOf(
      before.map(({ role, text }) => ({ role, text: text.peek() })),
      this.system.peek(),
    );
  }

  async #generate(message: Message, signal: AbortSignal, listener?: AnswerListener): Promise<void> {
    const request = { messages: this.#prompt(message), ...samplingOf(this.#app.settings.data.peek().chat) };
    const engine = await this.#app.engine('chat', signal);
    signal.throwIfAborted();
    const pacer = new TextPacer((text) => (message.text.value = text));
    const thoughts = new TextPacer((text) => (message.thoughts.value = text));
    const meter = new AnswerMeter();
    const saving = new Pace(SAVE_EVERY, () => {
      // While edits are refused, intermediate states are not saved: each would be one more edit to retry.
      if (this.#refused.length > 0) return;
      void this.change(update({ ...message.data(), text: pacer.text, ...(thoughts.text !== '' && { thoughts: thoughts.text }) }));
    });
    try {
      for await (const event of engine.chat(request, signal)) {
        meter.take(event);
        if (event.type !== 'delta') continue;
        if (message.status.peek() === 'waiting') message.status.value = 'writing';
        if (event.reasoning) thoughts.add(event.reasoning);
        if (event.text !== '') {
          pacer.add(event.text);
          listener?.({ type: 'text', text: event.text });
        }
        saving.ask();
      }
      batch(() => {
        pacer.flush();
        message.status.value = 'done';
      });
    } finally {
      saving.stop();
      pacer.flush();
      thoughts.flush();
      message.stats.value = meter.stats();
    }
  }
}

function newMessage(role: MessageData['role'], text: string, status: MessageStatus): Message {
  return new Message({ id: newId(), role, text, status });
}
