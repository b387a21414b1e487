/** Settings of the hub: its address, the person's token for it, where that is sent and how long it is kept. */
import { useSignal } from '@preact/signals';
import { useApp } from '../app.ts';
import { toFailure } from '../failure.ts';
import { DEFAULT_SETTINGS } from '../settings.ts';
import { useDraft } from '../ui/draft.ts';
import { TextField } from '../ui/fields.tsx';

const PANEL = 'hub-access';
const FIELD = 'hub-token';

/** The panel for hub and token, folded at first: most models need no token. */
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
  const field = useDraft(hubToken.access(hub)?.token ?? '', give);
  const until = hubToken.isKept ? 'kept in this browser until you empty the field' : 'forgotten when this page is closed or reloaded';
  return (
    <>
      <label class="field">
        <span class="label">Your token there, for models with terms and private ones</span>
        <input id={FIELD} type="password" autocomplete="off" spellcheck={false} {...field} />
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

/** A button that leads to the token's field. */
export function TokenButton() {
  const show = (): void => {
    const panel = document.getElementById(PANEL);
    if (panel instanceof HTMLDetailsElement) panel.open = true;
    document.getElementById(FIELD)?.focus();
  };
  return <button onClick={show}>Give a token</button>;
}

/** The host of a hub's address, for people; the text itself if it is no URL. */
export const hostOf = (hub: string): string => (URL.canParse(hub) ? new URL(hub).host : hub);
