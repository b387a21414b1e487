/** Conversations on the left, the open one as a document, its settings on the right. */
import { useSignal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useApp } from '../app.ts';
import { EngineNotice } from '../engine-notice.tsx';
import { DEFAULT_SETTINGS } from '../settings.ts';
import { whyNotHere } from '../state-words.ts';
import { isTyping } from '../ui/composing.ts';
import { useEscape } from '../ui/escape.ts';
import { useStickToBottom } from '../ui/stick-to-bottom.ts';
import type { VoiceLoop } from '../voice/voice-loop.ts';
import { ChatSettings } from './chat-settings.tsx';
import { Composer } from './composer.tsx';
import type { Conversation } from './conversation.ts';
import { ConversationList } from './conversation-list.tsx';
import { MessageArticle } from './message-article.tsx';

const SUGGESTIONS = ['What can you do?', 'Tell me a short story about a fox.', 'What is the capital of France?', 'What is a lighthouse?'];

export function ChatView() {
  const app = useApp();
  const conversation = app.conversations.current.value;
  const messages = conversation.messages.value;
  const { box, content, stick } = useStickToBottom(conversation.id, messages.length === 0);
  const { voice } = app;
  const drawer = useSignal<Drawer | ''>('');
  useEffect(() => () => voice.leave(), []);
  useChatKeys();
  useEscape(() => closed(drawer) || stopAll(conversation, voice));
  const send = (text: string): void => {
    stick();
    void conversation.send(text);
  };
  return (
    <div class="chat-layout" data-drawer={drawer}>
      <aside class="side left" aria-label="Conversations">
        <ConversationList onChosen={() => (drawer.value = '')} />
      </aside>
      <div class="column">
        <div class="drawers row spread">
          <DrawerButton drawer={drawer} name="list" />
          <DrawerButton drawer={drawer} name="settings" />
        </div>
        <div class="scroller" ref={box} role="log" aria-live="off" aria-label="Conversation" tabIndex={0}>
          <div ref={content} class="document">
            {messages.length === 0 ? <Welcome onPick={send} /> : <h1 class="hidden">Chat</h1>}
            <ol class="messages">
              {messages.map((message, index) => (
                <MessageArticle
                  key={message.id}
                  message={message}
                  conversation={conversation}
                  isLast={index === messages.length - 1}
                  voice={voice}
                />
              ))}
            </ol>
            {messages.length > 0 && <EngineNotice task="chat" onRestarted={() => void resume(conversation)} />}
          </div>
        </div>
        <div class="dock">
          <Composer conversation={conversation} voice={voice} onSend={send} />
        </div>
      </div>
      <aside class="side right" aria-label="Settings">
        <ChatSettings conversation={conversation} />
      </aside>
    </div>
  );
}

/** Closes the open drawer; returns false when none was open. */
function closed(drawer: Signal<Drawer | ''>): boolean {
  const wasOpen = drawer.peek() !== '';
  drawer.value = '';
  return wasOpen;
}

const DRAWERS = { list: 'Conversations', settings: 'Settings' } as const;
type Drawer = keyof typeof DRAWERS;

/** On narrow screens, opens a drawer with what a wide screen shows at the side, and closes it again. */
function DrawerButton({ drawer, name }: { drawer: Signal<Drawer | ''>; name: Drawer }) {
  const isOpen = drawer.value === name;
  return (
    <button class="plain" aria-expanded={isOpen} onClick={() => (drawer.value = isOpen ? '' : name)}>
      {isOpen ? `Close ${DRAWERS[name].toLowerCase()}` : DRAWERS[name]}
    </button>
  );
}

/** Stops the answer and the sound; returns false when there was neither. */
function stopAll(conversation: Conversation, voice: VoiceLoop): boolean {
  if (!conversation.running.peek() && !voice.busy) return false;
  conversation.stop();
  voice.cancel();
  return true;
}

/** After a restart, writes the answer again that the loss of the GPU broke off. */
async function resume(conversation: Conversation): Promise<void> {
  const last = conversation.messages.peek().at(-1);
  if (last?.role === 'assistant' && last.status.peek() === 'failed') await conversation.answer();
}

/** Shown to newcomers in an empty conversation: what this is, where it runs, what to do, and how to add a model. */
function Welcome({ onPick }: { onPick: (text: string) => void }) {
  const app = useApp();
  const isServer = app.settings.where.value.chat === 'server';
  const why = whyNotHere(app.environment.value);
  const isOwn = app.settings.value.models.chat !== DEFAULT_SETTINGS.models.chat;
  const device = app.environment.value === 'software' ? 'on your own processor (this browser offers no GPU)' : 'on your own GPU';
  return (
    <section class="welcome">
      <h1>Ask something.</h1>
      {isServer ? (
        <p>Answers come from {app.server('chat')}. What you write is sent there.</p>
      ) : (
        <p>
          Parley chats, <a href="#/speak">speaks</a> and <a href="#/transcribe">transcribes</a> with models that run in this tab, {device}.
          Nothing you write or say leaves this page.
        </p>
      )}
      {isServer && why && <p>{why}</p>}
      <EngineNotice task="chat" />
      <ul class="suggestions">
        {SUGGESTIONS.map((text) => (
          <li key={text}>
            <button onClick={() => onPick(text)}>{text}</button>
          </li>
        ))}
      </ul>
      {!isServer && !isOwn && (
        <p>
          The model that comes with the page is a toy. <a href="#/models">Models</a> has real ones to download, and opens your own: a GGUF
          file or a model’s folder, which may also be dropped anywhere on this page.
        </p>
      )}
    </section>
  );
}

/** Installs the view's keys: `/` focuses the composer, Alt+arrows move between messages. */
function useChatKeys(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const composer = document.querySelector<HTMLElement>('.composer textarea');
      const typing = isTyping(event.target);
      if (event.key === '/' && !typing) composer?.focus();
      // Not in other fields, which use these keys themselves: a select opens, for example.
      else if ((!typing || event.target === composer) && event.altKey && (event.key === 'ArrowUp' || event.key === 'ArrowDown'))
        walk(event.key === 'ArrowUp' ? -1 : 1);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

function walk(step: number): void {
  const headings = [...document.querySelectorAll<HTMLElement>('.message h2')];
  const at = headings.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? headings.length - 1 : Math.min(headings.length - 1, Math.max(0, at + step));
  headings[next]?.focus();
}
