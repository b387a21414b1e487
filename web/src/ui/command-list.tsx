/** The command list (Ctrl/Cmd+K), which goes anywhere and does anything by typing its name; `?` shows the keys. */
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { useApp } from '../app.ts';
import type { App } from '../app.ts';
import { ROUTES, TITLES } from '../router.ts';
import { ACTION_WORDS } from '../state-words.ts';
import { isComposing, isTyping } from './composing.ts';

interface Command {
  readonly name: string;
  readonly hint: string;
  run(): void;
}

const KEYS: readonly (readonly [string, string])[] = [
  ['Enter', 'send'],
  ['Shift+Enter', 'new line'],
  ['Esc', 'stop the answer or the sound, close a drawer'],
  ['/', 'write a message'],
  ['Alt+↑ Alt+↓', 'go from message to message'],
  ['Hold Space on “Hold to talk”', 'speak to the model'],
  ['?, Ctrl+K or ⌘K', 'this list'],
];

function commandsOf(app: App): Command[] {
  return [
    { name: ACTION_WORDS.newConversation, hint: 'chat', run: () => (app.conversations.create(), app.router.go('chat')) },
    ...ROUTES.map((route) => ({ name: TITLES[route], hint: 'view', run: () => app.router.go(route) })),
    ...(['light', 'dark', 'system'] as const).map((theme) => ({
      name: `Theme: ${theme === 'system' ? 'auto' : theme}`,
      hint: 'theme',
      run: () => app.settings.set('theme', theme),
    })),
    ...app.conversations.list.value
      .filter((conversation) => conversation.title.value !== '')
      .map((conversation) => ({
        name: conversation.title.value,
        hint: 'conversation',
        run: () => (app.conversations.open(conversation.id), app.router.go('chat')),
      })),
  ];
}

export function CommandList() {
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = useSignal(false);
  const open = (): void => {
    isOpen.value = true;
    dialog.current!.showModal();
  };
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const opens = (event.key === 'k' && (event.ctrlKey || event.metaKey)) || (event.key === '?' && !isTyping(event.target));
      if (!opens || dialog.current?.open) return;
      event.preventDefault();
      open();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button class="plain opener" title="Ctrl+K or ⌘K" onClick={open}>
        Commands
      </button>
      <dialog ref={dialog} class="commands" aria-label="Commands and keys" onClose={() => (isOpen.value = false)}>
        {isOpen.value && <Commands onChosen={() => dialog.current!.close()} />}
        <dl class="keys">
          {KEYS.map(([key, what]) => (
            <div key={key}>
              <dt>{key}</dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
      </dialog>
    </>
  );
}

/** A field and its matches; the arrow keys move through them while the focus stays in the field. */
function Commands({ onChosen }: { onChosen: () => void }) {
  const query = useSignal('');
  const chosen = useSignal(0);
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => field.current!.focus(), []);
  // A layout effect, so that the chosen command is scrolled into view before the paint.
  useLayoutEffect(() => list.current!.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' }), [chosen.value]);
  const found = commandsOf(useApp()).filter(({ name }) => name.toLowerCase().includes(query.value.toLowerCase()));
  const run = (command: Command | undefined): void => {
    onChosen();
    command?.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    // Keys that an input method uses are not commands.
    if (isComposing(event)) return;
    if (event.key === 'ArrowDown') chosen.value = Math.max(0, Math.min(found.length - 1, chosen.value + 1));
    else if (event.key === 'ArrowUp') chosen.value = Math.max(0, chosen.value - 1);
    else if (event.key === 'Enter') run(found[chosen.value]);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <input
        ref={field}
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="commands"
        aria-activedescendant={`command-${chosen.value}`}
        aria-label="Find a command"
        placeholder="Find a view, a conversation or a command"
        value={query}
        onInput={(event) => ((query.value = event.currentTarget.value), (chosen.value = 0))}
        onKeyDown={onKeyDown}
      />
      <ul id="commands" role="listbox" aria-label="Commands" ref={list}>
        {found.map(({ name, hint }, index) => (
          <li
            key={hint + name}
            id={`command-${index}`}
            role="option"
            aria-selected={index === chosen.value}
            onClick={() => run(found[index])}
          >
            <span>{name}</span>
            <span class="label">{hint}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="label">Nothing has this name.</p>}
    </>
  );
}
