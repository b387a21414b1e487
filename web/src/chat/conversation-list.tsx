/** All conversations, newest first; several may be answering at once. */
import { useSignal } from '@preact/signals';
import { useApp } from '../app.ts';
import { download } from '../util.ts';

export function ConversationList({ onChosen }: { onChosen: () => void }) {
  const app = useApp();
  const { conversations } = app;
  const note = useSignal('');
  const current = conversations.current.value;
  const importFile = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    try {
      note.value = `${conversations.import(await file.text())} imported`;
    } catch (error) {
      note.value = error instanceof Error ? error.message : String(error);
    }
  };
  return (
    <div class="conversations">
      <button
        onClick={() => {
          conversations.create();
          onChosen();
        }}
      >
        New conversation
      </button>
      <ul>
        {conversations.list.value.map((conversation) => (
          <li key={conversation.id} class={conversation === current ? 'current' : ''}>
            <button
              class="plain title"
              aria-current={conversation === current ? 'true' : undefined}
              onClick={() => {
                conversations.open(conversation.id);
                onChosen();
              }}
            >
              {conversation.running.value && <span class="running-mark" aria-label="answering" />}
              {conversation.title.value || 'Untitled'}
            </button>
            {conversation.messages.value.length > 0 && (
              <button
                class="plain"
                aria-label={`Delete ${conversation.title.value}`}
                onClick={() => void conversations.remove(conversation)}
              >
                ×
              </button>
            )}
          </li>
        ))}
      </ul>
      <div class="row foot">
        <button
          class="plain"
          onClick={() => download('parley-conversations.json', new Blob([conversations.export()], { type: 'application/json' }))}
        >
          Export
        </button>
        <label class="plain-file">
          Import
          <input
            type="file"
            accept=".json,application/json"
            class="hidden"
            onChange={(event) => void importFile(event.currentTarget.files?.[0])}
          />
        </label>
        <span class="label">{note}</span>
      </div>
      {conversations.problem.value && (
        <p class="label" role="alert">
          {conversations.problem}
        </p>
      )}
    </div>
  );
}
