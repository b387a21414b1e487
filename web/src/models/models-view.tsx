/** The models view: presets, adding models, and for each task the bundled, stored and recommended models. */
import { RECOMMENDED_MODELS } from '../../../sources/index.ts';
import { useApp } from '../app.ts';
import { AddModel } from './add-model.tsx';
import type { ModelTask } from './manifest.ts';
import { ModelItem } from './model-item.tsx';
import { Presets, RecommendedItem } from './recommended.tsx';
import { whyNotHere } from '../state-words.ts';
import { formatBytes } from '../util.ts';

const TASKS: readonly (readonly [ModelTask, string])[] = [
  ['chat', 'Chat'],
  ['speech', 'Speech'],
  ['transcription', 'Transcription'],
];

export function ModelsView() {
  const why = whyNotHere(useApp().environment.value);
  return (
    <div class="page single">
      <header>
        <h1>Models</h1>
        <p>Stored in this browser for this address only. Once a model is stored, the page works without a network.</p>
      </header>
      {why !== undefined && (
        <section class="notice problem" aria-label="Engine">
          <p>{why}</p>
        </section>
      )}
      <StorageLine />
      <Presets />
      <AddModel />
      {TASKS.map(([task, name]) => (
        <TaskModels key={task} task={task} name={name} />
      ))}
    </div>
  );
}

/**
 * The models of a task: bundled and stored ones, then the recommended ones. Models looked up in this visit are listed with the form
 * instead.
 */
function TaskModels({ task, name }: { task: ModelTask; name: string }) {
  const { library } = useApp();
  const recommended = RECOMMENDED_MODELS.filter((model) => model.task === task);
  const listed = new Set([...recommended, ...library.found.value].map(({ id }) => id));
  const here = library.all().filter((manifest) => manifest.task === task && !listed.has(manifest.id));
  return (
    <section aria-labelledby={`models-${task}`}>
      <h2 id={`models-${task}`}>{name}</h2>
      <ul class="model-list">
        {here.map((manifest) => (
          <ModelItem key={manifest.id} manifest={manifest} />
        ))}
        {recommended.map((model) => (
          <RecommendedItem key={model.id} model={model} />
        ))}
      </ul>
    </section>
  );
}

const NOTHING_KEPT =
  'This browser keeps nothing for this page, as in a private window or by a setting. The models that come with the page are fetched at each visit; others need a window that may store them.';

function StorageLine() {
  const app = useApp();
  const { canKeep, storage: use } = app.library;
  const storage = use.value;
  if (!storage || !canKeep.value) {
    const words = canKeep.value ? 'This browser does not say how much this page stores.' : NOTHING_KEPT;
    return whyNotHere(app.environment.value) ? null : <p class="label">{words}</p>;
  }
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
