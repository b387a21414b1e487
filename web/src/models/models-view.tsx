/** Which models are here, how large, whole or not; getting, checking, deleting them; own folders and hub repositories. */
import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { useApp } from '../app.ts';
import type { App } from '../app.ts';
import type { SessionState } from '../backend/session-state.ts';
import { toFailure } from '../failure.ts';
import { formatBytes } from '../util.ts';
import { AddModel } from './add-model.tsx';
import { manifestBytes } from './manifest.ts';
import type { ModelManifest, ModelTask } from './manifest.ts';
import type { Progress, StoredModel } from './model-store.ts';

const TASK_WORDS: Readonly<Record<ModelTask, string>> = { chat: 'Chat', speech: 'Speech', transcription: 'Transcription' };

export function ModelsView() {
  const app = useApp();
  const models = app.library.all();
  return (
    <div class="page single">
      <header>
        <h1>Models</h1>
        <p>Stored in this browser for this address only. Once a model is stored, the page works without a network.</p>
      </header>
      <StorageLine />
      <ul class="model-list">
        {models.map((manifest) => (
          <ModelItem key={manifest.id} manifest={manifest} />
        ))}
      </ul>
      <AddModel />
    </div>
  );
}

function StorageLine() {
  const app = useApp();
  const storage = app.library.storage.value;
  if (!storage) return <p class="label">This browser does not say how much this page stores.</p>;
  const askToKeep = async (): Promise<void> => {
    const granted = await navigator.storage.persist();
    app.announcer.say(granted ? 'The browser will keep the models' : 'The browser did not agree');
    await app.library.refresh();
  };
  return (
    <div class="row storage">
      <span class="number">{formatBytes(storage.usage)} stored</span>
      <span class="label">{storage.persisted ? 'kept until you delete it' : 'the browser may delete it when space runs short'}</span>
      {!storage.persisted && <button onClick={() => void askToKeep()}>Ask the browser to keep it</button>}
    </div>
  );
}

/** Work on a stored model: its progress, its way to be stopped, and its last word. */
class ModelWork {
  readonly note = signal('');
  readonly share = signal(0);
  readonly abort = signal<AbortController | undefined>(undefined);
  readonly #app: App;
  readonly #id: string;

  constructor(app: App, id: string) {
    this.#app = app;
    this.#id = id;
  }

  /** As it is known now: a download adds hashes. */
  get #manifest(): ModelManifest {
    return this.#app.library.manifest(this.#id)!;
  }

  fetch(): void {
    void this.#run(async (signal, progress) => {
      await this.#app.store.download(this.#manifest, signal, progress);
      return 'Stored';
    });
  }

  verify(): void {
    void this.#run(async (_signal, progress) => {
      const damaged = await this.#app.store.verify(this.#id, progress);
      return damaged.length === 0 ? 'Every byte is right' : `Damaged and removed: ${damaged.join(', ')}`;
    });
  }

  remove(): void {
    void this.#run(async () => {
      const { id, task } = this.#manifest;
      if (this.#app.settings.value.models[task] === id) this.#app.sessions[task].unload();
      await this.#app.store.remove(id);
      return 'Deleted';
    });
  }

  async #run(what: (signal: AbortSignal, progress: Progress) => Promise<string>): Promise<void> {
    const abort = new AbortController();
    this.abort.value = abort;
    this.share.value = 0;
    this.note.value = '';
    try {
      this.note.value = await what(abort.signal, (done, total) => (this.share.value = done / total));
    } catch (error) {
      this.note.value = abort.signal.aborted ? 'Paused; what has arrived is kept' : toFailure(error).message;
    }
    this.abort.value = undefined;
    await this.#app.library.refresh();
  }
}

function ModelItem({ manifest }: { manifest: ModelManifest }) {
  const app = useApp();
  const { id, task, modelType, source } = manifest;
  const work = useMemo(() => new ModelWork(app, id), [id]);
  const stored = app.library.stored.value.find((entry) => entry.manifest.id === id);
  const isChosen = app.settings.data.value.models[task] === id;
  const session: SessionState = isChosen ? app.sessions[task].state.value : { name: 'idle' };
  const total = manifestBytes(manifest);
  return (
    <li class="model" data-model={id} data-stored={stored?.complete ? 'yes' : stored ? 'part' : 'no'}>
      <div>
        <h2>{id}</h2>
        <p class="label">
          {TASK_WORDS[task]} · {modelType} · {formatBytes(total)} · {source}
          {source === 'bundled' && ' · '}
          {source === 'bundled' && (
            <a href={`models/${id}/README.md`} target="_blank" rel="noopener">
              model card
            </a>
          )}
        </p>
      </div>
      <p class="number state">{stateWords(stored, total, session.name)}</p>
      <ModelActions manifest={manifest} work={work} stored={stored} isLoaded={session.name === 'ready'} />
      {work.abort.value && <progress value={work.share} max={1} aria-label={`Progress of ${id}`} />}
      <p class="label note" role="status">
        {work.note}
      </p>
      {session.name === 'failed' && (
        <p class="failure" role="alert">
          {session.failure.message}
        </p>
      )}
    </li>
  );
}

interface ActionsProps {
  readonly manifest: ModelManifest;
  readonly work: ModelWork;
  readonly stored: StoredModel | undefined;
  readonly isLoaded: boolean;
}

function ModelActions({ manifest, work, stored, isLoaded }: ActionsProps) {
  const app = useApp();
  const { id, task, files } = manifest;
  const abort = work.abort.value;
  if (abort) {
    return (
      <div class="row">
        <button onClick={() => abort.abort()}>Pause</button>
      </div>
    );
  }
  const load = (): void => {
    app.settings.update('models', { [task]: id });
    void app.load(task);
  };
  const isFetchable = !stored?.complete && files[0]?.url !== undefined;
  return (
    <div class="row">
      {isFetchable && (
        <button onClick={() => work.fetch()}>{stored ? 'Resume' : `Download ${formatBytes(manifestBytes(manifest))}`}</button>
      )}
      {stored && <button onClick={() => work.verify()}>Verify</button>}
      {isLoaded ? <button onClick={() => app.sessions[task].unload()}>Unload</button> : <button onClick={load}>Load</button>}
      {stored && <button onClick={() => work.remove()}>Delete</button>}
    </div>
  );
}

function stateWords(stored: { readonly complete: boolean; readonly bytes: number } | undefined, total: number, session: string): string {
  if (session !== 'idle' && session !== 'failed') return session === 'ready' ? 'loaded' : session;
  if (!stored) return 'absent';
  return stored.complete ? 'stored' : `${Math.floor((stored.bytes / total) * 100)} %`;
}
