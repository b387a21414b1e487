/** The notice in a view that says what its engine is doing or lacks, with buttons that help; renders nothing when all is well. */
import { useApp } from './app.ts';
import type { Remedy } from './failure.ts';
import { manifestBytes } from './models/manifest.ts';
import type { ModelTask } from './models/manifest.ts';
import { ACTION_WORDS, describeSession } from './state-words.ts';
import type { StateWords } from './state-words.ts';

export function EngineNotice({ task, onRestarted }: { task: ModelTask; onRestarted?: () => void }) {
  const app = useApp();
  const act = useRemedy(task, onRestarted);
  const words = useStateWords(task);
  if (app.settings.where.value[task] === 'server' || words.sentence === undefined) return null;
  return (
    <section class={`notice ${words.isProblem ? 'problem' : ''}`} role={words.isProblem ? 'alert' : undefined} aria-label="Engine">
      <p>{words.sentence}</p>
      {words.progress !== undefined && <progress value={words.progress} max={1} aria-label={words.sentence} />}
      <div class="row">
        {words.actions.map((action, index) => (
          <button key={action} class={index === 0 && action !== 'cancel' ? 'primary' : ''} onClick={() => act(action)}>
            {ACTION_WORDS[action]}
          </button>
        ))}
      </div>
    </section>
  );
}

/** The StateWords of a task's engine in the tab. */
export function useStateWords(task: ModelTask): StateWords {
  const { environment, library, online, sessions, settings } = useApp();
  const id = settings.data.value.models[task];
  const manifest = library.manifest(id);
  const bytes = manifest ? manifestBytes(manifest) : 0;
  return describeSession(sessions[task].state.value, environment.value, bytes, library.isComplete(id), online.value);
}

/** Whether the view's own button is the primary one; until the model is loaded, the notice's is. */
export function useIsReady(task: ModelTask): boolean {
  const app = useApp();
  return app.settings.where.value[task] === 'server' || app.sessions[task].state.value.name === 'ready';
}

/** Returns the handler of the buttons of a task's notices and failures. */
export function useRemedy(task: ModelTask, onRestarted?: () => void): (action: 'load' | 'cancel' | Remedy) => void {
  const app = useApp();
  return (action) => {
    const again = (): unknown => app.sessions[task].state.peek().name === 'ready' && onRestarted?.();
    if (action === 'load') void app.load(task);
    else if (action === 'runWithoutStoring') void app.load(task, { store: false }).then(again);
    else if (action === 'cancel') app.sessions[task].unload();
    else if (action === 'restart' || action === 'retry') void app.load(task).then(again);
    else if (action === 'newConversation') app.conversations.create();
    else if (action === 'useServer') app.settings.choose(task, 'server');
    else if (action === 'useTab') app.settings.choose(task, 'tab');
    else if (action === 'manageModels') app.router.go('models');
    else if (action === 'device') app.router.go('device');
  };
}
