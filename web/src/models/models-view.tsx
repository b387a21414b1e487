/** Which models are here, how large, whole or not; getting, checking, deleting them; own folders and hub repositories. */
import { useSignal } from '@preact/signals';
import { useApp } from '../app.ts';
import { toFailure } from '../failure.ts';
import { formatBytes } from '../util.ts';
import { AddModel } from './add-model.tsx';
import { manifestBytes } from './manifest.ts';
import type { ModelManifest, ModelTask } from './manifest.ts';

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
      <ul class="models">
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
  return (
    <div class="row storage">
      <span class="number">{formatBytes(storage.usage)} stored</span>
      <span class="label">{storage.persisted ? 'kept until you delete it' : 'the browser may delete it when space runs short'}</span>
      {!storage.persisted && (
        <button
          onClick={async () => {
            const granted = await navigator.storage.persist();
            app.announcer.say(granted ? 'The browser will keep the models' : 'The browser did not agree');
            await app.library.refresh();
          }}
        >
          Ask the browser to keep it
        </button>
      )}
    </div>
  );
}

function ModelItem({ manifest }: { manifest: ModelManifest }) {
  const app = useApp();
  const note = useSignal('');
  const work = useSignal<AbortController | undefined>(undefined);
  const share = useSignal(0);
  const { id, task } = manifest;
  const stored = app.library.stored.value.find((entry) => entry.manifest.id === id);
  const session = app.sessions[task].state.value;
  const isChosen = app.settings.data.value.models[task] === id;
  const total = manifestBytes(manifest);
  const run = async (what: (signal: AbortSignal, progress: (done: number, total: number) => void) => Promise<string>): Promise<void> => {
    work.value = new AbortController();
    share.value = 0;
    note.value = '';
    try {
      note.value = await what(work.value.signal, (done, all) => (share.value = done / all));
    } catch (error) {
      note.value = work.value.signal.aborted ? 'Paused; what has arrived is kept' : toFailure(error).message;
    }
    work.value = undefined;
    await app.library.refresh();
  };
  const fetchAll = (): Promise<void> =>
    run(async (signal, progress) => {
      await app.store.download(manifest, signal, progress);
      return 'Stored';
    });
  const verify = (): Promise<void> =>
    run(async (_signal, progress) => {
      const damaged = await app.store.verify(id, progress);
      return damaged.length === 0 ? 'Every byte is right' : `Damaged and removed: ${damaged.join(', ')}`;
    });
  const remove = (): Promise<void> =>
    run(async () => {
      if (isChosen) app.sessions[task].unload();
      await app.store.remove(id);
      return 'Deleted';
    });
  return (
    <li class="model" data-model={id} data-stored={stored?.complete ? 'yes' : stored ? 'part' : 'no'}>
      <div>
        <h2>{id}</h2>
        <p class="label">
          {TASK_WORDS[task]} · {manifest.modelType} · {formatBytes(total)} · {manifest.source}
          {manifest.source === 'bundled' && (
            <>
              {' · '}
              <a href={`models/${id}/README.md`} target="_blank" rel="noopener">
                model card
              </a>
            </>
          )}
        </p>
      </div>
      <p class="number state">{stateWords(stored, total, isChosen ? session.name : 'idle')}</p>
      <div class="row">
        {work.value ? (
          <button onClick={() => work.value?.abort()}>Pause</button>
        ) : (
          <>
            {!stored?.complete && manifest.files[0]?.url !== undefined && (
              <button onClick={() => void fetchAll()}>{stored ? 'Resume' : `Download ${formatBytes(total)}`}</button>
            )}
            {stored && <button onClick={() => void verify()}>Verify</button>}
            {isChosen && session.name === 'ready' ? (
              <button onClick={() => app.sessions[task].unload()}>Unload</button>
            ) : (
              <button
                onClick={() => {
                  app.settings.update('models', { [task]: id });
                  void app.load(task);
                }}
              >
                Load
              </button>
            )}
            {stored && <button onClick={() => void remove()}>Delete</button>}
          </>
        )}
      </div>
      {work.value && <progress value={share} max={1} aria-label={`Progress of ${id}`} />}
      <p class="label note" role="status">
        {note}
      </p>
      {isChosen && session.name === 'failed' && (
        <p class="failure" role="alert">
          {session.failure.message}
        </p>
      )}
    </li>
  );
}

function stateWords(stored: { readonly complete: boolean; readonly bytes: number } | undefined, total: number, session: string): string {
  if (session !== 'idle' && session !== 'failed') return session === 'ready' ? 'loaded' : session;
  if (!stored) return 'absent';
  return stored.complete ? 'stored' : `${Math.floor((stored.bytes / total) * 100)} %`;
}
