/** Recommended models in the list, and presets of three models. */
import { PRESETS, parseSource, presetModels } from '../../../sources/index.ts';
import type { RecommendedModel } from '../../../sources/index.ts';
import { useApp } from '../app.ts';
import { ModelItem, WorkBar, WorkLine } from './model-item.tsx';
import { TokenButton, hostOf } from './hub-access.tsx';
import { lacking, pageBytes, pageSource, tabBytes } from './recommended-work.ts';
import { formatBytes } from '../util.ts';

/** A recommended model: shown like any other once it has been looked up, before that from the table of recommended models. */
export function RecommendedItem({ model }: { model: RecommendedModel }) {
  const app = useApp();
  const { id, type, licence, good, bad } = model;
  const words = (
    <p class="good-for">
      Good for {good}. Not for {bad}. {licence}.
    </p>
  );
  const manifest = app.library.manifest(id);
  if (manifest) return <ModelItem manifest={manifest}>{words}</ModelItem>;
  const bytes = pageBytes(model);
  const size = bytes === undefined ? [] : [formatBytes(bytes)];
  const work = app.works.of(id);
  const { hub, access } = app.finder;
  const lacksToken = model.terms === true && !access;
  return (
    <li class="model" data-model={id} data-stored="no">
      <div>
        <h3>{id}</h3>
        <p class="label">{[type, ...size, `about ${formatBytes(tabBytes(model))} of memory`, 'hub'].join(' · ')}</p>
        {words}
        {lacksToken && (
          <p class="label">
            Its terms have to be accepted first, at{' '}
            <a href={hubPage(hub, model)} target="_blank" rel="noopener">
              its page on {hostOf(hub)}
            </a>
            . Then a token of that account opens it.
          </p>
        )}
      </div>
      <p class="number state">{work.running.value ? 'downloading' : 'not stored'}</p>
      <div class="row">
        {work.running.value ? (
          <button onClick={() => work.stop()} aria-label={`Pause: ${id}`}>
            Pause
          </button>
        ) : lacksToken ? (
          <TokenButton />
        ) : (
          <button onClick={() => void app.recommended.get(model)} aria-label={`Download ${size.join('')}: ${id}`}>
            Download {size}
          </button>
        )}
      </div>
      <WorkLine work={work} />
    </li>
  );
}

/** The hub's page, where the person reads and accepts the model's terms. */
function hubPage(hub: string, model: RecommendedModel): string {
  const source = parseSource(pageSource(model));
  return `${hub.replace(/\/+$/, '')}/${source.kind === 'hub' ? source.id : ''}`;
}

/** Presets: three models at once, for a class of machines. */
export function Presets() {
  const app = useApp();
  const { recommended, library, settings } = app;
  const host = hostOf(settings.data.value.hub);
  return (
    <section class="presets" aria-labelledby="presets">
      <h2 id="presets">Three real models at once</h2>
      <p class="label">
        The bundled models are toys. These come from {host} when you ask, are checked against their published hashes and kept in this
        browser.
      </p>
      <ul>
        {Object.entries(PRESETS).map(([name, preset]) => {
          const models = presetModels(preset);
          const missing = models.filter(({ id }) => !library.isComplete(id));
          const bytes = missing.reduce((sum, model) => sum + lacking(model, library), 0);
          const memory = models.reduce((sum, model) => sum + tabBytes(model), 0);
          const what = missing.length === 0 ? 'Use these' : `Download ${formatBytes(bytes)}`;
          return (
            <li key={name} class="model" data-preset={name}>
              <div>
                <h3>
                  {name}, for {preset.for}
                </h3>
                <p class="label">
                  {models.map(({ id }) => id).join(', ')} · about {formatBytes(memory)} of memory
                </p>
              </div>
              <div class="row">
                {recommended.preset.value === name ? (
                  <button class="running" onClick={() => recommended.stop()} aria-label={`Pause: preset ${name}`}>
                    Pause
                  </button>
                ) : (
                  <button
                    disabled={recommended.preset.value !== undefined}
                    onClick={() => void recommended.getPreset(name)}
                    aria-label={`${what}: preset ${name}`}
                  >
                    {what}
                  </button>
                )}
              </div>
              {recommended.preset.value === name && recommended.current.value && (
                <WorkBar work={recommended.current.value} name={recommended.current.value.id} />
              )}
            </li>
          );
        })}
      </ul>
      <p class="label note" role="status">
        {recommended.note}
      </p>
    </section>
  );
}
