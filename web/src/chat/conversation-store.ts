/** The store of all conversations, and which of them is open. */
import { computed, signal } from '@preact/signals';
import type { ReadonlySignal, Signal } from '@preact/signals';
import type { Services } from '../services.ts';
import { UNDO_MS } from '../storage/deletions.ts';
import { keepForTab, siteStorage } from '../storage/site-storage.ts';
import { leftOutWords } from '../storage/stored-fields.ts';
import { Conversation } from './conversation.ts';
import type { ConversationData } from './conversation-data.ts';
import { exportFile, readExportFile } from './conversation-file.ts';
import { newId, whyNotKept } from '../util.ts';
import { History } from './history.ts';
import { isReadable, mark } from './record.ts';
import type { Edit } from './record.ts';

const CURRENT = 'parley.conversation';

export class ConversationStore {
  /** Newest first. */
  readonly list: Signal<readonly Conversation[]> = signal([]);
  readonly currentId = signal('');
  readonly current: ReadonlySignal<Conversation>;
  /** Message for people while the browser refuses to store conversations; else empty. */
  readonly problem = signal('');
  readonly #app: Services;
  readonly #history = new History();

  constructor(app: Services) {
    this.#app = app;
    const first = this.#create();
    this.list.value = [first];
    this.currentId.value = first.id;
    this.current = computed(() => this.list.value.find(({ id }) => id === this.currentId.value) ?? this.list.value[0]!);
    app.tabs.listen('conversation', (id) => void this.#reload(id));
  }

  async restore(): Promise<void> {
    try {
      const found = await this.#history.all();
      const saved = found.filter(isReadable).sort((a, b) => b.updated - a.updated);
      if (saved.length < found.length) this.problem.value = leftOutWords('conversations');
      const kept = saved.filter(holdsSomething).map((data) => this.#keep(new Conversation(this.#app, this, data)));
      this.list.value = [...this.list.value, ...kept];
      for (const data of saved) if (data.removed !== undefined) this.#offerUndo(new Conversation(this.#app, this, data), data.removed);
      const last = siteStorage('sessionStorage')?.getItem(CURRENT);
      if (kept.some(({ id }) => id === last)) this.open(last!);
      else if (kept[0] && last) this.open(kept[0].id);
    } catch (error) {
      this.#complain(error);
    }
  }

  /** Opens an empty conversation; reuses one that is empty already. */
  create(): Conversation {
    const empty = this.list.peek().find((conversation) => conversation.messages.peek().length === 0);
    const conversation = empty ?? this.#create();
    if (!empty) this.list.value = [conversation, ...this.list.peek()];
    this.open(conversation.id);
    return conversation;
  }

  open(id: string): void {
    this.currentId.value = id;
    keepForTab(CURRENT, id);
  }

  /** Copies a conversation up to and including a message. */
  branch(conversation: Conversation, messageId: string): void {
    const data = conversation.data();
    const messages = data.messages.slice(0, data.messages.findIndex(({ id }) => id === messageId) + 1);
    const now = Date.now();
    this.#add({ ...data, title: `${data.title} (branch)`, created: now, updated: now, messages });
  }

  /**
   * Applies an edit to the stored conversation (to `fallback` if it is not stored), tells other tabs, and returns the new stored state;
   * undefined if the browser refused. Never rejects.
   */
  async store(fallback: ConversationData, edit: Edit): Promise<ConversationData | undefined> {
    if (fallback.id === this.currentId.peek()) keepForTab(CURRENT, fallback.id);
    try {
      const stored = await this.#history.edit(fallback, edit);
      this.problem.value = '';
      this.#app.tabs.tell({ kind: 'conversation', id: fallback.id });
      return stored;
    } catch (error) {
      this.#complain(error);
      return undefined;
    }
  }

  /** Deletes a conversation; the deletion can be undone for some seconds. */
  remove(conversation: Conversation): void {
    conversation.stop();
    const removed = Date.now();
    this.#takeAway(conversation, removed);
    void conversation.change(mark(removed));
  }

  #takeAway(conversation: Conversation, removed: number): void {
    const at = this.list.peek().indexOf(conversation);
    const wasOpen = this.current.peek() === conversation;
    this.#drop(conversation);
    this.#offerUndo(conversation, removed, { at, wasOpen });
  }

  /** Returns all conversations that are not empty, as a JSON document. */
  export(): string {
    return exportFile(this.list.peek().flatMap((entry) => (entry.messages.peek().length > 0 ? [entry.data()] : [])));
  }

  /** Adds the conversations of an export file; returns how many. Throws an Error with a message for people if the text is not one. */
  import(text: string): number {
    const conversations = readExportFile(text);
    // The last one that is added stands on top and is open: the first of the file, which is its newest.
    for (const data of conversations.toReversed()) this.#add(data);
    return conversations.length;
  }

  #offerUndo(conversation: Conversation, removed: number, { at = 0, wasOpen = false } = {}): void {
    const { id } = conversation;
    const undo = (): void => {
      const list = [...this.list.peek()];
      list.splice(at, 0, conversation);
      this.list.value = list;
      if (wasOpen) this.open(id);
      void conversation.change(mark(undefined));
    };
    const purge = (): void => void this.#history.purge(id).catch((error: unknown) => this.#complain(error));
    const label = conversation.title.peek() || 'conversation';
    // The time to undo a deletion of an earlier visit may be over already.
    if (Date.now() >= removed + UNDO_MS) purge();
    else this.#app.deletions.offer({ id, label, undo, purge }, removed);
  }

  /** Shows a change of another tab: a new stored state, or a deletion. */
  async #reload(id: string): Promise<void> {
    const stored = await this.#history.get(id).catch(() => undefined);
    if (stored && !isReadable(stored)) return;
    const shown = this.list.peek().find((conversation) => conversation.id === id);
    if (stored && stored.removed === undefined) this.#app.deletions.forget(id);
    if (shown && stored?.removed !== undefined) {
      // The person may be reading it here: the deletion can be undone in this tab too.
      shown.stop();
      this.#takeAway(shown, stored.removed);
    } else if (shown && stored) shown.adopt(stored);
    else if (shown) this.#drop(shown);
    else if (stored && holdsSomething(stored))
      this.list.value = [this.#keep(new Conversation(this.#app, this, stored)), ...this.list.peek()];
  }

  #drop(conversation: Conversation): void {
    const rest = this.list.peek().filter((other) => other !== conversation);
    const wasOpen = this.current.peek() === conversation;
    this.list.value = rest.length > 0 ? rest : [this.#create()];
    if (wasOpen) this.open(this.list.peek()[0]!.id);
  }

  /** Adds a copy of a conversation. Its messages get new ids, because a message's id names the job that writes it. */
  #add(data: ConversationData): void {
    const messages = data.messages.map((message) => ({ ...message, id: newId() }));
    const conversation = this.#keep(new Conversation(this.#app, this, { ...data, id: newId(), messages }));
    this.list.value = [conversation, ...this.list.peek()];
    this.open(conversation.id);
    // No change of its own: it stays as old as it is, so that the list keeps its order over a reload.
    void conversation.change((record) => record);
  }

  #create(): Conversation {
    const now = Date.now();
    const { system } = this.#app.settings.data.peek().chat;
    return this.#keep(new Conversation(this.#app, this, { id: newId(), title: '', created: now, updated: now, system, messages: [] }));
  }

  /** Keeps the draft of a conversation; all empty conversations share one. */
  #keep(conversation: Conversation): Conversation {
    const isEmpty = (): boolean => conversation.messages.peek().length === 0;
    this.#app.work.texts.keep(() => `draft ${isEmpty() ? '' : conversation.id}`, conversation.draft);
    return conversation;
  }

  #complain(error: unknown): void {
    this.problem.value = `Conversations cannot be kept here: ${whyNotKept(error)}`;
  }
}

/**
 * Whether a stored conversation is shown: it is not deleted, and has messages or a system prompt. One whose system prompt was typed and
 * cleared again has neither.
 */
const holdsSomething = ({ removed, messages, system }: ConversationData): boolean =>
  removed === undefined && (messages.length > 0 || system !== '');
