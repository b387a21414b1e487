/** The body of an answer, complete or not: a thinking model's thoughts, folded, the text, and what it is waiting for. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useApp } from '../app.ts';
import { isWebAddress } from '../backend/servers.ts';
import { Markdown } from '../ui/markdown.tsx';
import { formatCount } from '../util.ts';
import type { Message } from './conversation.ts';

/** Seconds without text after which a server may be gone: a connection does not show that a machine sleeps or lost its network. */
const QUIET_SECONDS = 15;

export function AnswerBody({ message }: { message: Message }) {
  const app = useApp();
  const status = message.status.value;
  const isServer = app.settings.where.value.chat === 'server';
  const server = isWebAddress(app.server('chat')) ? new URL(app.server('chat')).host : 'the server';
  const isLoading = !isServer && app.sessions.chat.state.value.name !== 'ready';
  return (
    <>
      {status === 'waiting' && (
        <p class="label">{isServer ? `Waiting for ${server}` : isLoading ? 'Waiting for the model' : 'Reading the question'}</p>
      )}
      <Thoughts message={message} />
      {status !== 'waiting' && <Markdown text={message.text.value} />}
      {isServer && (status === 'waiting' || status === 'writing') && <Quiet message={message} server={server} />}
    </>
  );
}

/** A thinking model's thoughts, rendered only while they are unfolded. */
function Thoughts({ message }: { message: Message }) {
  const isOpen = useSignal(false);
  const thoughts = message.thoughts.value;
  if (thoughts === '') return null;
  const isThinking = message.status.value === 'writing' && message.text.value === '';
  return (
    <details class="thoughts" onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary class={isThinking ? 'running' : ''}>
        {isThinking ? 'Thinking' : 'Thoughts'}, {formatCount(thoughts.length)} characters
      </summary>
      {isOpen.value && <Markdown text={thoughts} />}
    </details>
  );
}

/** A notice that appears when no text has come for a while. */
function Quiet({ message, server }: { message: Message; server: string }) {
  const { announcer } = useApp();
  const isQuiet = useSignal(false);
  const seen = message.text.value.length + message.thoughts.value.length;
  const words = `Nothing has come from ${server} for ${QUIET_SECONDS} seconds. It may be busy, or gone.`;
  useEffect(() => {
    isQuiet.value = false;
    const timer = setTimeout(() => {
      isQuiet.value = true;
      announcer.say(words);
    }, QUIET_SECONDS * 1000);
    return () => clearTimeout(timer);
  }, [seen]);
  return isQuiet.value ? <p class="label note">{words}</p> : null;
}
