/** A question or answer, with its buttons. */
import { useSignal } from '@preact/signals';
import { useApp } from '../app.ts';
import { useRemedy } from '../engine-notice.tsx';
import { ACTION_WORDS } from '../state-words.ts';
import { isComposing } from '../ui/composing.ts';
import { CopyButton } from '../ui/copy-button.tsx';
import { formatCount, sentence } from '../util.ts';
import type { VoiceLoop } from '../voice/voice-loop.ts';
import { AnswerBody } from './answer-body.tsx';
import { cutWords, emptyWords, endWords } from './answer-words.ts';
import type { Conversation, Message } from './conversation.ts';
import type { AnswerStats, MessageStatus } from './conversation-data.ts';
import { Question } from './question.tsx';

interface Props {
  readonly message: Message;
  readonly conversation: Conversation;
  readonly isLast: boolean;
  readonly voice: VoiceLoop;
}

export function MessageArticle({ message, conversation, isLast, voice }: Props) {
  const editing = useSignal(false);
  const status = message.status.value;
  const isUser = message.role === 'user';
  return (
    <li class={`message ${message.role}`} data-status={status}>
      <h2 tabIndex={-1}>{isUser ? 'You' : 'Parley'}</h2>
      <div class="content">
        {editing.value ? (
          <Editor
            text={message.text.value}
            onCancel={() => (editing.value = false)}
            onDone={(text) => {
              editing.value = false;
              void conversation.edit(message, text);
            }}
          />
        ) : isUser ? (
          <Question text={message.text.value} />
        ) : (
          <AnswerBody message={message} />
        )}
        {message.failure.value && <FailureLine message={message} conversation={conversation} isLast={isLast} />}
        {status === 'stopped' && <p class="label note">Stopped</p>}
        {!isUser && status === 'done' && message.text.value.trim() === '' && <Empty stats={message.stats.value} />}
        {message.stats.value && <Cut stats={message.stats.value} />}
        {status !== 'waiting' && status !== 'writing' && !editing.value && (
          <Actions message={message} conversation={conversation} isLast={isLast} voice={voice} onEdit={() => (editing.value = true)} />
        )}
      </div>
    </li>
  );
}

function Editor({ text, onDone, onCancel }: { text: string; onDone: (text: string) => void; onCancel: () => void }) {
  return (
    <form
      class="stack editor"
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || isComposing(event)) return;
        event.preventDefault();
        onCancel();
      }}
      onSubmit={(event) => {
        event.preventDefault();
        const value = new FormData(event.currentTarget).get('text') as string;
        if (value.trim() !== '') onDone(value);
      }}
    >
      <textarea name="text" dir="auto" rows={3} aria-label="Edit the question" ref={(element) => element?.focus()} defaultValue={text} />
      <div class="row">
        <button class="primary">Ask again</button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <span class="label">This replaces what follows. “Branch” keeps a copy.</span>
      </div>
    </form>
  );
}

function Actions({ message, conversation, isLast, voice, onEdit }: Props & { onEdit: () => void }) {
  const app = useApp();
  const isUser = message.role === 'user';
  const speaking = voice.speakingId.value === message.id;
  const isEmpty = message.text.value === '';
  return (
    <div class="actions row">
      {!isEmpty && <CopyButton text={() => message.text.peek()} />}
      {isUser && (
        <button class="plain" onClick={onEdit}>
          Edit
        </button>
      )}
      {!isUser && !isEmpty && (
        <button
          class={`plain ${speaking ? 'running' : ''}`}
          onClick={() => (speaking ? voice.cancel() : void voice.speak(message, conversation))}
        >
          {speaking ? 'Stop speaking' : 'Speak'}
        </button>
      )}
      {isLast && !isUser && !message.failure.value && (
        <button class="plain" onClick={() => void conversation.answer()}>
          Regenerate
        </button>
      )}
      {!isEmpty && (
        <button class="plain" onClick={() => app.conversations.branch(conversation, message.id)}>
          Branch
        </button>
      )}
      {message.stats.value && <Stats stats={message.stats.value} status={message.status.value} />}
    </div>
  );
}

function Empty({ stats = {} }: { stats: Pick<AnswerStats, 'reason'> | undefined }) {
  const words = emptyWords(stats);
  return words === undefined ? null : <p class="label note">{words}</p>;
}

function Cut({ stats }: { stats: AnswerStats }) {
  const { choices } = useApp();
  const words = cutWords(stats, choices.about('chat')?.contextLength);
  return words === undefined ? null : <p class="label note">{words}</p>;
}

/** Statistics of an answer: rate and time to first token visible, the rest folded. */
function Stats({ stats, status }: { stats: AnswerStats; status: MessageStatus }) {
  const { promptTokens, cachedTokens, completionTokens, firstTokenMs, rate } = stats;
  if (completionTokens === 0) return null;
  const ended = endWords(status, stats);
  return (
    <details class="stats">
      <summary>
        {rate > 0 && `${rate.toFixed(1)} tok/s · `}
        {firstTokenMs > 0
          ? `first word after ${(firstTokenMs / 1000).toFixed(firstTokenMs < 1000 ? 2 : 1)} s`
          : `${formatCount(completionTokens)} tokens`}
      </summary>
      <dl>
        <dt>answer</dt>
        <dd>{formatCount(completionTokens)} tokens</dd>
        {promptTokens > 0 && (
          <>
            <dt>prompt</dt>
            <dd>
              {formatCount(promptTokens)} tokens, {formatCount(cachedTokens)} from cache
            </dd>
          </>
        )}
        {ended !== undefined && (
          <>
            <dt>ended</dt>
            <dd>{ended}</dd>
          </>
        )}
      </dl>
    </details>
  );
}

/** The failure of an answer: short while the notice below says the same with the same buttons; without buttons if other messages follow. */
function FailureLine({ message, conversation, isLast }: Pick<Props, 'message' | 'conversation' | 'isLast'>) {
  const app = useApp();
  const problem = message.failure.value!;
  const remedy = useRemedy('chat', () => void conversation.answer());
  const session = app.sessions.chat.state.value.name;
  if (isLast && app.settings.where.value.chat === 'tab' && session !== 'ready' && session !== 'idle') {
    return <p class="label note">{message.text.value === '' ? 'Not answered' : 'Broken off'}</p>;
  }
  return (
    <div class="failure" role="alert">
      <p>
        {problem.code === 'device_lost'
          ? 'The model stopped before the end of this: it was unloaded, or the GPU was reset.'
          : sentence(problem.message)}
      </p>
      <div class="row">
        {(isLast ? problem.remedies : []).map((action) => (
          <button key={action} onClick={() => (action === 'retry' ? void conversation.answer() : remedy(action))}>
            {ACTION_WORDS[action]}
          </button>
        ))}
      </div>
    </div>
  );
}
