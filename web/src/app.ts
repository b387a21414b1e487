/** The state and services that all views share, created once in main.tsx and passed down by context. */
import { computed, effect, signal } from '@preact/signals';
import type { ReadonlySignal, Signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { EngineSession, splitConfig } from './backend/engine-session.ts';
import { RemoteEngine } from './backend/remote-engine.ts';
import type { TaskEngine } from './backend/remote-engine.ts';
import { guessServers } from './backend/servers.ts';
import { describeFiles } from './backend/start-engine-worker.ts';
import { Responsiveness } from './device/responsiveness.ts';
import { SelfTest } from './device/self-test.ts';
import { ConversationStore } from './chat/conversation-store.ts';
import { canCompute, detectEnvironment } from './environment.ts';
import type { Environment } from './environment.ts';
import { EngineError } from '../../engine/errors.ts';
import { FailureError } from './failure.ts';
import type { Finder } from './models/find-model.ts';
import type { HubToken } from './models/hub-token.ts';
import type { ModelTask } from './models/manifest.ts';
import { AddWork } from './models/add-work.ts';
import { ModelChoices } from './models/model-choices.ts';
import { ModelLibrary } from './models/model-library.ts';
import { ModelStore } from './models/model-store.ts';
import { ModelWorks } from './models/model-work.ts';
import { RecommendedWork } from './models/recommended-work.ts';
import { Router } from './router.ts';
import type { Services } from './services.ts';
import { serverKey } from './settings.ts';
import type { Settings } from './settings.ts';
import { SpeechWork } from './speak/speech-work.ts';
import { Deletions } from './storage/deletions.ts';
import { Tabs } from './storage/tabs.ts';
import { WorkStore } from './storage/work-store.ts';
import { TranscriptionWork } from './transcribe/transcription-work.ts';
import { Announcer } from './ui/announcer.ts';
import { orAborted } from './util.ts';
import { VoiceLoop } from './voice/voice-loop.ts';

/** The root of the page: the stores and services, an engine session and a remote engine for each task, and the choice between the two. */
export class App implements Services {
  readonly settings: Settings;
  readonly router = new Router();
  readonly announcer = new Announcer();
  readonly selfTest = new SelfTest();
  readonly responsiveness = new Responsiveness();
  readonly hubToken: HubToken;
  readonly store = new ModelStore(() => this.hubToken.access(this.settings.data.peek().hub));
  readonly library: ModelLibrary;
  readonly works: ModelWorks;
  readonly recommended: RecommendedWork;
  readonly adding: AddWork;
  readonly choices: ModelChoices;
  readonly tabs = new Tabs();
  readonly deletions = new Deletions();
  readonly work = new WorkStore(this.tabs);
  readonly conversations: ConversationStore;
  readonly speech: SpeechWork;
  readonly transcription: TranscriptionWork;
  readonly voice: VoiceLoop;
  readonly sessions: Readonly<Record<ModelTask, EngineSession>>;
  readonly environment: Signal<Environment> = signal('unknown');
  /** Base URLs of the listeners, guessed from the page's own address. */
  readonly guessedServers: Signal<Readonly<Record<ModelTask, string>>>;
  readonly online = signal(navigator.onLine);
  /** The service worker of a newer build, waiting to take over; undefined when there is none. */
  readonly updateReady = signal<ServiceWorker | undefined>(undefined);
  /** EngineInfo of any loaded engine, for the device that they share; undefined while none is loaded. */
  readonly loadedInfo = computed(() => {
    for (const { state } of Object.values(this.sessions)) if (state.value.name === 'ready') return state.value.info;
    return undefined;
  });
  readonly #servers: ReadonlySignal<Readonly<Record<ModelTask, string>>>;
  readonly #remote: ReadonlySignal<RemoteEngine>;
  /** Loads in progress, by task. */
  readonly #loads = new Map<ModelTask, Promise<void>>();
  /** The probe for the page's own server; until it settles, guessedServers may be wrong. */
  #probed: Promise<void> | undefined;

  constructor(settings: Settings, hubToken: HubToken) {
    this.settings = settings;
    this.hubToken = hubToken;
    this.library = new ModelLibrary(this.store);
    this.sessions = {
      chat: new EngineSession('chat', this.store, () => splitConfig(settings.data.peek().bothAdapters)),
      speech: new EngineSession('speech', this.store),
      transcription: new EngineSession('transcription', this.store),
    };
    this.works = new ModelWorks(this);
    this.recommended = new RecommendedWork(this);
    this.adding = new AddWork(this);
    this.choices = new ModelChoices(this);
    this.guessedServers = signal(guessServers(location.href, false));
    this.conversations = new ConversationStore(this);
    this.speech = new SpeechWork(this);
    this.transcription = new TranscriptionWork(this);
    this.voice = new VoiceLoop(this);
    effect(() => this.voice.keepTo(this.conversations.list.value));
    // Computed from these two settings alone, so that other changes do not discard what is known of a server.
    const chosen = computed(() => settings.data.value.servers);
    const apiKey = computed(() => settings.data.value.apiKey);
    const models = computed(() => settings.data.value.serverModels);
    this.#servers = computed(() => {
      const guessed = this.guessedServers.value;
      const { chat, speech, transcription } = chosen.value;
      return {
        chat: chat || guessed.chat,
        speech: speech || guessed.speech,
        transcription: transcription || guessed.transcription,
      };
    });
    this.#remote = computed(() => {
      const servers = this.#servers.value;
      return new RemoteEngine({ servers, apiKey: apiKey.value, chosen: (task) => models.value[serverKey(task, servers[task])] });
    });
  }

  /** Restores stored work and lists stored models; then finds out whether this tab can compute, and falls back to servers if not. */
  async start(): Promise<void> {
    addEventListener('online', () => (this.online.value = true));
    addEventListener('offline', () => (this.online.value = false));
    this.#probed = this.#probeServer();
    const work = [this.conversations.restore(), this.speech.takes.restore(), this.transcription.restore()];
    await Promise.all([this.library.refresh(), ...work]);
    this.environment.value = await detectEnvironment();
    if (!canCompute(this.environment.value)) this.settings.useServers();
  }

  /** Whether any view's player is playing. */
  get isPlaying(): boolean {
    return [this.speech, this.transcription, this.voice].some(({ player }) => player.playing.value);
  }

  /** Stops all playback; returns false when nothing was playing. */
  stopSound(): boolean {
    const wasPlaying = this.isPlaying;
    this.speech.player.pause();
    this.transcription.player.pause();
    if (this.voice.player.playing.peek()) this.voice.hush();
    return wasPlaying;
  }

  get remote(): RemoteEngine {
    return this.#remote.value;
  }

  /** The Finder for the hub and token of the current settings. */
  get finder(): Finder {
    const { hub } = this.settings.value;
    const access = this.hubToken.access(hub);
    return { hub, access, describe: (model, signal) => describeFiles(model, signal, access) };
  }

  /** Base URL of a task's server: the one the person set, else the guessed one. */
  server(task: ModelTask): string {
    return this.#servers.value[task];
  }

  /**
   * Returns a task's engine, in the tab or on a server as the person chose. Loads the tab's engine on demand, also after it failed or was
   * lost: asking again is the person's way to retry. If it is loading already, waits for that until `signal` aborts, which does not stop
   * the loading. Throws FailureError when it cannot run.
   */
  async engine(task: ModelTask, signal: AbortSignal): Promise<TaskEngine> {
    if (this.settings.where.peek()[task] === 'server') {
      // An address that the person set needs no probe.
      if (this.#probed && this.settings.data.peek().servers[task] === '') await orAborted(this.#probed, signal);
      const { remote } = this;
      // Asked before the first request, which needs one of the model's own voices and languages.
      await remote.model(task, signal);
      return remote;
    }
    const session = this.sessions[task];
    // A preset may have chosen another model than the one that is loaded.
    const isReady = session.state.peek().name === 'ready' && session.model.peek() === this.settings.data.peek().models[task];
    let loading = this.#loads.get(task) ?? (isReady ? undefined : this.load(task));
    // Again while there is a newer load: the person may have chosen another model meanwhile.
    for (; loading; loading = this.#loads.get(task)) await orAborted(loading, signal);
    const state = session.state.peek();
    if (state.name === 'failed') throw new FailureError(state.failure);
    // The loading was cancelled.
    if (state.name === 'idle') throw new DOMException('the model is not loaded', 'AbortError');
    return session.engine;
  }

  /** Loads the chosen model of a task into the tab. */
  async load(task: ModelTask, { store = true } = {}): Promise<void> {
    const load = this.#load(task, store);
    this.#loads.set(task, load);
    await load.finally(() => this.#loads.get(task) === load && this.#loads.delete(task));
  }

  async #load(task: ModelTask, store: boolean): Promise<void> {
    const id = this.settings.data.peek().models[task];
    await this.library.refresh();
    const manifest = this.library.manifest(id) ?? this.library.bundled(task);
    // The chosen model may be gone (browsers may delete it): the setting then gets the id of the model that replaces it.
    if (manifest && manifest.id !== id) this.settings.update('models', { [task]: manifest.id });
    if (manifest) await this.sessions[task].load(manifest, { store });
    else throw new EngineError('invalid_model', `there is no model '${id}' here`);
    await this.library.refresh();
    const { state } = this.sessions[task];
    if (state.value.name === 'ready') this.announcer.say(`${manifest.id} is ready`);
  }

  /** Finds out whether a Parley server serves this page: it sets x-request-id on every response. */
  async #probeServer(): Promise<void> {
    try {
      const response = await fetch(document.baseURI, { method: 'HEAD' });
      if (response.headers.has('x-request-id')) this.guessedServers.value = guessServers(location.href, true);
    } catch {
      // A static host, or none: the constructor's guess stays.
    }
  }
}

export const AppContext = createContext<App | undefined>(undefined);

export function useApp(): App {
  return useContext(AppContext)!;
}
