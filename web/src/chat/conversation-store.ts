/** All conversations, which of them is open, and their storage. */
import { computed, signal } from '@preact/signals';
import type { ReadonlySignal, Signal } from '@preact/signals';
import type { App } from '../app.ts';
import { Conversation } from './conversation.ts';
import type { ConversationData } from './conversation.ts';
import { newId } from '../util.ts';
import { History } from './history.ts';

/** What an export file is. */
interface ExportFile {
  readonly format: 'parley-conversations';
  readonly version: 1;
  readonly conversations: readonly ConversationData[];
}

const CURRENT = 'parley.conversation';

export class ConversationStore {
  /** Newest first. */
  readonly list: Signal<readonly Conversation[]> = signal([]);
  readonly currentId = signal('');
  readonly current: ReadonlySignal<Conversation>;
  /** Set when the browser refuses to keep conversations. */
  readonly problem = signal('');
  readonly #app: App;
  readonly #history = new History();

  constructor(app: App) {
    this.#app = app;
    const first = this.#create();
    this.list.value = [first];
    this.currentId.value = first.id;
    this.current = computed(() => this.list.value.find(({ id }) => id === this.currentId.value) ?? this.list.value[0]!);
  }

  async restore(): Promise<void> {
    try {
      const saved = (await this.#history.all()).sort((a, b) => b.updated - a.updated).map((data) => new Conversation(this.#app, data));
      this.list.value = [...this.list.value, ...saved];
      const last = sessionStorage.getItem(CURRENT);
      if (saved.some(({ id }) => id === last)) this.open(last!);
      else if (saved[0] && last !== null) this.open(saved[0].id);
    } catch (error) {
      this.#complain(error);
    }
  }

  /** Opens an empty conversation; one that is empty already is used. */
  create(): Conversation {
    const empty = this.list.peek().find((conversation) => conversation.messages.peek().length === 0);
    const conversation = empty ?? this.#create();
    if (!empty) this.list.value = [conversation, ...this.list.peek()];
    this.open(conversation.id);
    return conversation;
  }

  open(id: string): void {
    this.currentId.value = id;
    sessionStorage.setItem(CURRENT, id);
  }

  /** Copies a conversation up to and including a message. */
  branch(conversation: Conversation, messageId: string): void {
    const data = conversation.data();
    const messages = data.messages.slice(0, data.messages.findIndex(({ id }) => id === messageId) + 1);
    const now = Date.now();
    this.#add({ ...data, id: newId(), title: `${data.title} (branch)`, created: now, updated: now, messages });
  }

  save(conversation: Conversation): void {
    sessionStorage.setItem(CURRENT, conversation.id);
    void this.#history.put(conversation.data()).then(
      () => (this.problem.value = ''),
      (error: unknown) => this.#complain(error),
    );
  }

  async remove(conversation: Conversation): Promise<void> {
    conversation.stop();
    const rest = this.list.peek().filter((other) => other !== conversation);
    this.list.value = rest.length > 0 ? rest : [this.#create()];
    if (this.currentId.peek() === conversation.id) this.open(this.list.peek()[0]!.id);
    await this.#history.remove(conversation.id).catch((error: unknown) => this.#complain(error));
  }

  /** All conversations that hold something, as a JSON document. */
  export(): string {
    const conversations = this.list.peek().filter(({ messages }) => messages.peek().length > 0);
    const file: ExportFile = { format: 'parley-conversations', version: 1, conversations: conversations.map((entry) => entry.data()) };
    return JSON.stringify(file, null, 1);
  }

  /** Adds the conversations of an export file; returns how many. Throws a readable Error for anything else. */
  import(text: string): number {
    let file: Partial<ExportFile>;
    try {
      file = JSON.parse(text) as Partial<ExportFile>;
    } catch {
      throw new Error('this file is not JSON');
    }
    if (file.format !== 'parley-conversations' || !Array.isArray(file.conversations)) throw new Error('this is no export of conversations');
    for (const data of file.conversations) this.#add({ ...data, id: newId() });
    return file.conversations.length;
  }

  #add(data: ConversationData): void {
    const conversation = new Conversation(this.#app, data);
    this.list.value = [conversation, ...this.list.peek()];
    this.open(conversation.id);
    this.save(conversation);
  }

  #create(): Conversation {
    const now = Date.now();
    const { system } = this.#app.settings.data.peek().chat;
    return new Conversation(this.#app, { id: newId(), title: '', created: now, updated: now, system, messages: [] });
  }

  #complain(error: unknown): void {
    this.problem.value = `Conversations cannot be kept here: ${error instanceof Error ? error.message : String(error)}`;
  }
}
