/** The choice between this tab and a server for one task; shows the server's address and a curl command. */
import { useApp } from './app.ts';
import { isWebAddress } from './backend/servers.ts';
import type { ModelTask } from './models/manifest.ts';
import type { Where } from './settings.ts';
import { whyNotHere } from './state-words.ts';
import { CopyButton } from './ui/copy-button.tsx';

export function WhereSwitch({ task, curl }: { task: ModelTask; curl: (base: string) => string }) {
  const app = useApp();
  const { servers, apiKey } = app.settings.data.value;
  const where = app.settings.where.value[task];
  const why = whyNotHere(app.environment.value);
  const option = (value: Where, label: string) => (
    <label>
      <input type="radio" name={`where-${task}`} checked={where === value} onChange={() => app.settings.choose(task, value)} />
      {label}
    </label>
  );
  return (
    <fieldset class="stack where">
      <legend class="label">Computed</legend>
      <div class="segments">
        {option('tab', 'in this tab')}
        {option('server', 'on a server')}
      </div>
      {where === 'server' && (
        <>
          {why && <p class="label">{why}</p>}
          <label class="field">
            <span class="label">Address</span>
            <input
              type="url"
              value={servers[task]}
              placeholder={app.guessedServers.value[task]}
              aria-invalid={!isWebAddress(app.server(task))}
              onChange={(event) => app.settings.update('servers', { [task]: event.currentTarget.value.trim() })}
            />
            {!isWebAddress(app.server(task)) && <span class="label">This is no web address. One looks like http://localhost:3000/v1.</span>}
          </label>
          <label class="field">
            <span class="label">API key, if it wants one</span>
            <input
              type="password"
              autocomplete="off"
              value={apiKey}
              onChange={(event) => app.settings.set('apiKey', event.currentTarget.value.trim())}
            />
          </label>
          <CopyButton label="Copy as curl" text={() => curl(app.server(task))} plain={false} />
        </>
      )}
    </fieldset>
  );
}
