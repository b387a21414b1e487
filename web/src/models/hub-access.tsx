/** Which hub is asked, and the token for it: what is sent where, and how long it is kept. */
import { useSignal } from '@preact/signals';
import { useApp } from '../app.ts';
import { toFailure } from '../failure.ts';
import { DEFAULT_SETTINGS } from '../settings.ts';
import { TextField } from '../ui/fields.tsx';

const PANEL = 'hub-access';
const FIELD = 'hub-token';

/** Closed until it is wanted: most models are open to everyone. */
export function HubAccessPanel() {
  const app = useApp();
  const { hub } = app.settings.data.value;
  return (
    <details id={PANEL} class="hub-access">
      <summary>Hub and token</summary>
      <div class="stack">
        <TextField
          label="Address of the hub or of a mirror"
          value={hub}
          placeholder={DEFAULT_SETTINGS.hub}
          onChange={(address) => app.settings.set('hub', address.trim() || DEFAULT_SETTINGS.hub)}
        />
        <TokenField key={hub} hub={hub} />
      </div>
    </details>
  );
}

function TokenField({ hub }: { hub: string }) {
  const { hubToken } = useApp();
  const problem = useSignal('');
  const give = (token: string): void => {
    problem.value = '';
    try {
      hubToken.give(hub, token.trim());
    } catch (error) {
      problem.value = toFailure(error).message;
    }
  };
  const until = hubToken.isKept ? 'kept in this browser until you empty the field' : 'forgotten when this page is closed or reloaded';
  return (
    <>
      <label class="field">
        <span class="label">Your token there, for models with terms and private ones</span>
        <input
          id={FIELD}
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={hubToken.access(hub)?.token ?? ''}
          onChange={(event) => give(event.currentTarget.value)}
        />
      </label>
      <label class="check">
        <input type="checkbox" checked={hubToken.isKept} onChange={(event) => hubToken.keep(event.currentTarget.checked)} />
        Keep the token in this browser
      </label>
      <p class="label">
        It is sent to {hostOf(hub)} and to nobody else, and {until}.
      </p>
      {problem.value && (
        <p class="failure" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}

/** Leads to the field. */
export function TokenButton() {
  const show = (): void => {
    const panel = document.getElementById(PANEL);
    if (panel instanceof HTMLDetailsElement) panel.open = true;
    document.getElementById(FIELD)?.focus();
  };
  return <button onClick={show}>Give a token</button>;
}

/** A hub's name for people. */
export const hostOf = (hub: string): string => (URL.canParse(hub) ? new URL(hub).host : hub);
