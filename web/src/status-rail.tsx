/** The status rail, always visible: where each task runs, its state, and the speed of the last answer. */
import { useApp } from './app.ts';
import { useStateWords } from './engine-notice.tsx';
import type { ModelTask } from './models/manifest.ts';
import { VIEW_OF } from './router.ts';
import { formatBytes } from './util.ts';

export function StatusRail() {
  const app = useApp();
  const stats = app.conversations.current.value.messages.value.findLast(({ stats }) => stats.value)?.stats.value;
  const storage = app.library.storage.value;
  const update = app.updateReady.value;
  return (
    <footer class="rail" aria-label="Status">
      <Undo />
      {(Object.keys(VIEW_OF) as ModelTask[]).map((task) => (
        <TaskState key={task} task={task} />
      ))}
      {stats && stats.rate > 0 && <span class="number wide">{stats.rate.toFixed(1)} tok/s</span>}
      {storage && storage.usage > 0 && (
        <a href="#/models" class="wide">
          {formatBytes(storage.usage)} stored
        </a>
      )}
      {!app.online.value && <a href="#/models">offline</a>}
      {update && (
        <button
          class="plain"
          onClick={() => {
            // Another tab has activated the update already, for this tab too: there is nothing to wait for.
            if (update.state !== 'installed') return location.reload();
            navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), { once: true });
            update.postMessage('take-over');
          }}
        >
          Reload for the new version
        </button>
      )}
      <Fetching />
      <StopSound />
      <a href="#/device" class="end">
        {app.environment.value === 'software' ? 'software adapter' : 'device'}
      </a>
    </footer>
  );
}

/** Downloads of models that continue while another view is open. */
function Fetching() {
  const { works } = useApp();
  const [work] = works.fetching.value;
  if (!work) return null;
  return (
    <a href="#/models" class="busy">
      downloading {Math.floor(work.share.value * 100)} %
    </a>
  );
}

/** Stops sound that goes on after its view was left. */
function StopSound() {
  const app = useApp();
  const players = { chat: app.voice.player, speak: app.speech.player, transcribe: app.transcription.player } as const;
  const elsewhere = Object.entries(players).some(([view, player]) => view !== app.router.route.value && player.playing.value);
  if (!elsewhere) return null;
  return (
    <button class="plain" onClick={() => app.stopSound()}>
      Stop the sound
    </button>
  );
}

/** Offers to undo recent deletions. */
function Undo() {
  const { deletions } = useApp();
  return (
    <span role="status" class="undo">
      {deletions.list.value.map((deletion) => (
        <span key={deletion.id}>
          Deleted “<span class="name">{deletion.label}</span>”.{' '}
          <button class="plain" aria-label={`Undo: bring back ${deletion.label}`} onClick={() => deletions.undo(deletion)}>
            Undo
          </button>
        </span>
      ))}
    </span>
  );
}

function TaskState({ task }: { task: ModelTask }) {
  const app = useApp();
  const isServer = app.settings.where.value[task] === 'server';
  const state = app.sessions[task].state.value;
  const words = useStateWords(task);
  const word = isServer ? 'server' : words.word.replace(', software adapter', '');
  const percent = words.progress === undefined || isServer ? '' : ` ${Math.round(words.progress * 100)} %`;
  const tone = isServer || state.name === 'idle' ? '' : state.name === 'ready' ? 'ok' : words.isProblem ? 'bad' : 'busy';
  // On a phone there is room for the percentage only.
  const hidden = percent !== '' || !(tone === 'busy' || tone === 'bad');
  return (
    <a href={`#/${VIEW_OF[task]}`} class={`state ${tone}`} data-task={task} data-state={isServer ? 'server' : state.name}>
      <span class="name">{task}</span> <span class={hidden ? 'word' : ''}>{word}</span>
      {percent}
    </a>
  );
}
