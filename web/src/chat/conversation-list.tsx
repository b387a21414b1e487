/** The list of conversations, newest first; several may be answering at once. */
import { useSignal } from '@preact/signals';
import { useApp } from '../app.ts';
import { download, messageOf } from '../util.ts';
import type { Conversation } from './conversation.ts';

export function ConversationList({ onChosen }: { onChosen: () => void }) {
  const { conversations } = useApp();
  return (
    <div class="conversations">
      <button
        onClick={() => {
          conversations.create();
          onChosen();
          document.querySelector<HTMLElement>('[data-focus-home]')?.focus();
        }}
      >
        New conversation
      </button>
      <ul>
        {conversations.list.value.map((conversation) => (
          <ConversationItem key={conversation.id} conversation={conversation} onChosen={onChosen} />
        ))}
      </ul>
      <Transfer />
    </div>
  );
}

function ConversationItem({ conversation, onChosen }: { conversation: Conversation; onChosen: () => void }) {
  const { conversations } = useApp();
  const isCurrent = conversation === conversations.current.value;
  return (
    <li class={isCurrent ? 'current' : ''}>
      <button
        class="plain title"
        dir="auto"
        title={conversation.title.value}
        aria-current={isCurrent ? 'true' : undefined}
        onClick={() => {
          conversations.open(conversation.id);
          onChosen();
        }}
      >
        {conversation.running.value && <span class="running-mark" role="img" aria-label="answering" />}
        {conversation.title.value || 'Untitled'}
      </button>
      {(conversation.messages.value.length > 0 || conversation.system.value !== '') && (
        <button
          class="plain"
          aria-label={`Delete ${conversation.title.value || 'Untitled'}`}
          onClick={() => conversations.remove(conversation)}
        >
          ×
        </button>
      )}
    </li>
  );
}

/** Buttons that export all conversations to a file, and import them. */
function Transfer() {
  const { conversations } = useApp();
  const note = useSignal('');
  const importFile = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    try {
      note.value = `${conversations.import(await file.text())} imported`;
    } catch (error) {
      note.value = messageOf(error);
    }
  };
  const save = (): void => download('parley-conversations.json', new Blob([conversations.export()], { type: 'application/json' }));
  return (
    <div class="row foot">
      <button class="plain" onClick={save}>
        Export
      </button>
      <label class="plain-file">
        Import
        <input
          type="file"
          accept=".json,application/json"
          class="hidden"
          onChange={(event) => {
            void importFile(event.currentTarget.files?.[0]);
            // Cleared, so that the same file can be chosen again once it is corrected.
            event.currentTarget.value = '';
          }}
        />
      </label>
      <span class="label" role="status">
        {note}
      </span>
    </div>
  );
}
