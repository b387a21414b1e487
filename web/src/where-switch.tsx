/** The choice between this tab and a server for one task, with the server's address, key and model, and a curl command. */
import { useApp } from './app.ts';
import { isWebAddress } from './backend/servers.ts';
import type { ModelTask } from './models/manifest.ts';
import { serverKey } from './settings.ts';
import type { Where } from './settings.ts';
import { whyNotHere } from './state-words.ts';
import { CopyButton } from './ui/copy-button.tsx';
import { useDraft } from './ui/draft.ts';

interface Props {
  readonly task: ModelTask;
  /** Returns a curl command for the server with this base URL. */
  readonly curl: (base: string) => string;
}

export function WhereSwitch({ task, curl }: Props) {
  const app = useApp();
  const where = app.settings.where.value[task];
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
      {where === 'server' && <ServerFields task={task} curl={curl} />}
    </fieldset>
  );
}

function ServerFields({ task, curl }: Props) {
  const app = useApp();
  const { servers, apiKey } = app.settings.data.value;
  const why = whyNotHere(app.environment.value);
  const isAddress = isWebAddress(app.server(task));
  const address = useDraft(servers[task], (text) => app.settings.update('servers', { [task]: text.trim() }));
  const key = useDraft(apiKey, (text) => app.settings.set('apiKey', text.trim()));
  return (
    <>
      {why && <p class="label">{why}</p>}
      <label class="field">
        <span class="label">Address</span>
        <input type="url" placeholder={app.guessedServers.value[task]} aria-invalid={!isAddress} {...address} />
        {!isAddress && <span class="label">This is no web address. One looks like http://localhost:3000/v1.</span>}
      </label>
      <label class="field">
        <span class="label">API key, if it wants one</span>
        <input type="password" autocomplete="off" {...key} />
      </label>
      <ServerModel task={task} />
      <CopyButton label="Copy as curl" text={() => curl(app.server(task))} plain={false} />
    </>
  );
}

/** The choice of a server's model, where it lists several. A model that was chosen before and is gone is named. */
function ServerModel({ task }: { task: ModelTask }) {
  const app = useApp();
  const listed = [...new Set(app.remote.listed.value[task])];
  const name = app.choices.name(task);
  const key = serverKey(task, app.server(task));
  const chosen = app.settings.data.value.serverModels[key];
  return (
    <>
      {listed.length > 1 && (
        <label class="field">
          <span class="label">Model</span>
          <select value={name} onChange={(event) => app.settings.update('serverModels', { [key]: event.currentTarget.value })}>
            {listed.map((id) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
          </select>
        </label>
      )}
      {name !== undefined && chosen !== undefined && chosen !== name && (
        <p class="label">
          The server does not list {chosen} any more: {name} answers instead.
        </p>
      )}
    </>
  );
}
