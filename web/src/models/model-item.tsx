/** A model in the list: what it is, whether it is stored, and its buttons. */
import type { ComponentChildren } from 'preact';
import { useApp } from '../app.ts';
import type { SessionState } from '../backend/session-state.ts';
import { aboutWords, memoryWords } from './about-words.ts';
import { TokenButton } from './hub-access.tsx';
import { manifestBytes } from './manifest.ts';
import type { ModelManifest } from './manifest.ts';
import { TITLES, VIEW_OF } from '../router.ts';
import type { StoredModel } from './model-store.ts';
import type { ModelWork } from './model-work.ts';
import { formatBytes, sentence } from '../util.ts';

/** A model whose files are known; `children` is further text about it. */
export function ModelItem({ manifest, children }: { manifest: ModelManifest; children?: ComponentChildren }) {
  const app = useApp();
  const { id, task, modelType, source, about = {} } = manifest;
  const stored = app.library.stored.value.find((entry) => entry.manifest.id === id);
  const session: SessionState = app.sessions[task].model.value === id ? app.sessions[task].state.value : { name: 'idle' };
  const total = manifestBytes(manifest);
  const work = app.works.of(id);
  const { format = 'safetensors' } = about;
  const words = [modelType, format, formatBytes(total), ...memoryWords(about), source];
  return (
    <li class="model" data-model={id} data-stored={stored?.complete ? 'yes' : stored ? 'part' : 'no'}>
      <div>
        <h3>{id}</h3>
        <p class="label">
          {words.join(' · ')}
          {source === 'bundled' && ' · '}
          {source === 'bundled' && (
            <a href={`models/${id}/README.md`} target="_blank" rel="noopener">
              model card
            </a>
          )}
        </p>
        <p class="label">{aboutWords(about).join(' · ')}</p>
        {children}
      </div>
      <p class="number state">{work.running.value ? STATE_WORDS[work.running.value.kind] : stateWords(stored, total, session.name)}</p>
      <ModelActions manifest={manifest} work={work} stored={stored} session={session.name} />
      <WorkLine work={work} />
      {session.name === 'failed' && (
        <p class="failure" role="alert">
          {sentence(session.failure.message)}
        </p>
      )}
    </li>
  );
}

/** Progress of the work on a model, and the result of the last work. */
export function WorkLine({ work }: { work: ModelWork }) {
  return (
    <>
      <WorkBar work={work} />
      <p class={`label note ${work.failed.value ? 'wrong' : ''}`} role="status">
        {work.note}
      </p>
      {work.wantsToken.value && (
        <div class="row work">
          <TokenButton />
        </div>
      )}
    </>
  );
}

/**
 * A progress bar with numbers, which are no live region: a screen reader would read them many times a second. `name` names the model where
 * the context does not.
 */
export function WorkBar({ work, name }: { work: ModelWork; name?: string }) {
  const running = work.running.value;
  if (!running || running.kind === 'delete') return null;
  return (
    <div class="work">
      <progress value={work.share} max={1} aria-label={`${WORK_WORDS[running.kind]} ${work.id}`} />
      <span class="number">
        {name !== undefined && `${name}: `}
        {work.line.value || 'looking it up'}
      </span>
    </div>
  );
}

const STATE_WORDS = { fetch: 'downloading', copy: 'copying', check: 'checking', delete: 'deleting' } as const;
const WORK_WORDS = { fetch: 'Downloading', copy: 'Copying', check: 'Checking', delete: 'Deleting' } as const;

interface ActionsProps {
  readonly manifest: ModelManifest;
  readonly work: ModelWork;
  readonly stored: StoredModel | undefined;
  readonly session: SessionState['name'];
}

function ModelActions({ manifest, work, stored, session }: ActionsProps) {
  const { id, files } = manifest;
  const running = work.running.value;
  const of = named(id);
  if (running) {
    const word = running.kind === 'fetch' ? 'Pause' : 'Cancel';
    return (
      <div class="row">
        <button onClick={() => work.stop()} {...of(word)}>
          {word}
        </button>
      </div>
    );
  }
  const isFetchable = !stored?.complete && files[0]?.url !== undefined;
  const get = stored ? 'Resume' : `Download ${formatBytes(manifestBytes(manifest))}`;
  const isHere = stored?.complete || manifest.source === 'bundled';
  return (
    <div class="row">
      {isFetchable && (
        <button class={isHere ? '' : 'primary'} onClick={() => void work.fetch()} {...of(get)}>
          {get}
        </button>
      )}
      <SessionActions manifest={manifest} isHere={isHere} session={session} />
      {stored && (
        <button onClick={() => void work.verify()} {...of('Verify')}>
          Verify
        </button>
      )}
      {stored && (
        <button onClick={() => void work.remove()} {...of('Delete')}>
          Delete
        </button>
      )}
    </div>
  );
}

/** Buttons that load or unload the model. */
function SessionActions({ manifest, isHere, session }: Omit<ActionsProps, 'work' | 'stored'> & { readonly isHere: boolean }) {
  const app = useApp();
  const { id, task } = manifest;
  const of = named(id);
  const route = VIEW_OF[task];
  if (session === 'ready') {
    return (
      <>
        <button class="primary" onClick={() => app.router.go(route)} {...of(TITLES[route])}>
          {TITLES[route]}
        </button>
        <button onClick={() => app.sessions[task].unload()} {...of('Unload')}>
          Unload
        </button>
      </>
    );
  }
  if (!isHere) return null;
  const load = (): void => {
    app.settings.update('models', { [task]: id });
    void app.load(task);
  };
  // A model added in this visit: to load it is the likely next step.
  const isNew = app.library.found.value.some((found) => found.id === id);
  return (
    <button class={isNew ? 'primary' : ''} onClick={load} disabled={!['idle', 'failed', 'lost'].includes(session)} {...of('Load')}>
      Load
    </button>
  );
}

/** A button's accessible name: what it does, and to which model. */
const named =
  (id: string) =>
  (what: string): { readonly 'aria-label': string } => ({ 'aria-label': `${what}: ${id}` });

function stateWords(stored: { readonly complete: boolean; readonly bytes: number } | undefined, total: number, session: string): string {
  if (session === 'elsewhere') return 'waiting';
  if (session !== 'idle' && session !== 'failed') return session === 'ready' ? 'loaded' : session;
  if (!stored) return 'not stored';
  return stored.complete ? 'stored' : `${Math.floor((stored.bytes / total) * 100)} %`;
}
