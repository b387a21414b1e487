/** The composer, where questions are written or spoken. Send turns into Stop while an answer is written; typing stays possible. */
import { useLayoutEffect, useRef } from 'preact/hooks';
import { useApp } from '../app.ts';
import { ModelPlace } from '../model-place.tsx';
import { isComposing } from '../ui/composing.ts';
import { directBeforePaste, directionOf } from '../ui/direction.ts';
import { isUnderFinger } from '../ui/kept-focus.ts';
import { Trace } from '../ui/trace.tsx';
import type { VoiceLoop } from '../voice/voice-loop.ts';
import type { Conversation } from './conversation.ts';

interface Props {
  readonly conversation: Conversation;
  readonly voice: VoiceLoop;
  readonly onSend: (text: string) => void;
}

export function Composer({ conversation, voice, onSend }: Props) {
  const { conversations } = useApp();
  const area = useRef<HTMLTextAreaElement>(null);
  // For rendering only; key handlers ask the conversation itself, because a key may come before the next render.
  const running = conversation.running.value;
  // The element holds the text, so that typing renders nothing. A layout effect sets it before the first paint.
  useLayoutEffect(() => {
    if (!isUnderFinger()) area.current!.focus({ preventScroll: true });
    // The unsent text of an earlier visit arrives once it has been read from the store.
    return conversation.draft.subscribe((text) => {
      area.current!.dir = directionOf(text);
      if (area.current!.value !== text) area.current!.value = text;
      fit(area.current!);
    });
  }, [conversation]);
  const submit = (): void => {
    const text = area.current!.value.trim();
    if (text === '') return;
    conversation.draft.value = '';
    voice.problem.value = '';
    onSend(text);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        if (conversation.running.peek()) conversation.stop();
        else submit();
      }}
    >
      {conversations.problem.value && (
        <p class="label" role="alert">
          {conversations.problem}
        </p>
      )}
      <VoiceStrip voice={voice} />
      <ModelPlace task="chat" id="chat-place" />
      <textarea
        ref={area}
        rows={1}
        data-focus-home
        aria-label="Message"
        aria-describedby="chat-place"
        placeholder="Write a message"
        onPaste={directBeforePaste}
        onInput={(event) => (conversation.draft.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || isComposing(event)) return;
          event.preventDefault();
          if (!conversation.running.peek()) submit();
        }}
      />
      <div class="row spread">
        <TalkButton voice={voice} conversation={conversation} />
        <button class={running ? 'running' : 'primary'}>{running ? 'Stop' : 'Send'}</button>
      </div>
    </form>
  );
}

const TALLEST = 240; // px
/** Number of characters that surely fills the field; measuring a pasted book at every key would make typing slow. */
const FULL = 4000;

function fit(area: HTMLTextAreaElement): void {
  if (area.value.length < FULL) area.style.height = 'auto';
  area.style.height = `${area.value.length < FULL ? Math.min(area.scrollHeight + 2, TALLEST) : TALLEST}px`;
}

function VoiceStrip({ voice }: { voice: VoiceLoop }) {
  const phase = voice.phase.value;
  if (phase === 'idle' && voice.problem.value === '') return null;
  return (
    <div class="voice-strip" role={voice.problem.value ? 'alert' : undefined}>
      {phase === 'listening' && <Trace levels={voice.levels} label="Microphone level" running />}
      <p class="label">{voice.problem.value || PHASE_WORDS[phase]}</p>
    </div>
  );
}

const PHASE_WORDS = {
  idle: '',
  starting: 'Opening the microphone',
  listening: 'Listening. To send, let go or press again.',
  transcribing: 'Writing down what you said',
  answering: 'Answering',
  speaking: 'Speaking. Talk to interrupt.',
} as const;

/** Push-to-talk button: hold it (pointer, Space or Enter) to talk; a short press toggles listening, for people who cannot hold. */
function TalkButton({ voice, conversation }: { voice: VoiceLoop; conversation: Conversation }) {
  const pressed = useRef(0);
  const listening = voice.phase.value === 'listening' || voice.phase.value === 'starting';
  const press = (): void => {
    if (pressed.current !== 0) return;
    pressed.current = performance.now();
    if (listening) {
      pressed.current = -1;
      void voice.finish(conversation);
    } else void voice.listen();
  };
  const release = (): void => {
    const held = performance.now() - pressed.current;
    const wasHold = pressed.current > 0 && held > 350;
    pressed.current = 0;
    if (wasHold) void voice.finish(conversation);
  };
  const isKey = (event: KeyboardEvent): boolean => event.key === ' ' || event.key === 'Enter';
  return (
    <button
      type="button"
      title="Or press once to begin and once to send"
      class={`talk ${listening ? 'running' : ''}`}
      aria-pressed={listening}
      data-seconds={voice.seconds.value.toFixed(1)}
      onPointerDown={(event) => {
        // The other buttons of a mouse open menus and go back.
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        press();
      }}
      onPointerUp={release}
      onPointerCancel={release}
      onKeyDown={(event) => {
        if (!isKey(event)) return;
        event.preventDefault();
        if (!event.repeat) press();
      }}
      onKeyUp={(event) => {
        if (!isKey(event)) return;
        // Otherwise Firefox would also turn Space into a click.
        event.preventDefault();
        release();
      }}
      // A key or pointer that is let go elsewhere, in another window for example, is not heard of here.
      onBlur={release}
      // Assistive technology (a screen reader, voice control) sends a click alone, without pointer or key events.
      onClick={(event) => {
        if (event.detail !== 0) return;
        press();
        release();
      }}
      onContextMenu={(event) => event.preventDefault()}
    >
      {listening ? 'Listening' : 'Hold to talk'}
    </button>
  );
}
