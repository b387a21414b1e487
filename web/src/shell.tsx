/** The frame around the views: the navigation above, the status rail below. */
import { useSignal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useApp } from './app.ts';
import type { App } from './app.ts';
import { isSoundFile } from './audio/sound-file.ts';
import { ChatView } from './chat/chat-view.tsx';
import { DeviceView } from './device/device-view.tsx';
import { droppedFiles, isModelDrop } from './models/dropped-model.ts';
import { ModelsView } from './models/models-view.tsx';
import { ROUTES, TITLES } from './router.ts';
import type { Theme } from './settings.ts';
import { SpeakView } from './speak/speak-view.tsx';
import { StatusRail } from './status-rail.tsx';
import { TranscribeView } from './transcribe/transcribe-view.tsx';
import { CommandList } from './ui/command-list.tsx';
import { useEscape } from './ui/escape.ts';
import { useKeptFocus } from './ui/kept-focus.ts';

const VIEWS = { chat: ChatView, speak: SpeakView, transcribe: TranscribeView, models: ModelsView, device: DeviceView } as const;
const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

export function Shell() {
  const app = useApp();
  const route = app.router.route.value;
  const { theme } = app.settings.data.value;
  const View = VIEWS[route];
  const main = useRef<HTMLElement>(null);
  useKeptFocus(main);
  // On the window, so that it runs after the view's own Escape handler.
  useEscape(() => app.stopSound(), window);
  const hint = useSignal('');
  useEffect(() => takeDroppedFiles(app, hint), []);
  useEffect(() => {
    document.documentElement.dataset['theme'] = theme;
  }, [theme]);
  useEffect(() => {
    document.getElementById('main')!.scrollTop = 0;
    document.title = `${TITLES[route]} · Parley`;
  }, [route]);
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById('main')?.focus())}>
        Skip to content
      </a>
      <header class="top">
        <span class="wordmark" aria-hidden="true">
          Parley
        </span>
        <nav aria-label="Views">
          {ROUTES.map((name) => (
            <a key={name} href={`#/${name}`} aria-current={name === route ? 'page' : undefined}>
              {TITLES[name]}
            </a>
          ))}
        </nav>
        <CommandList />
        <button
          class="plain theme"
          onClick={() => app.settings.set('theme', THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!)}
          title="Light, dark, or as the system has it"
        >
          Theme: {theme === 'system' ? 'auto' : theme}
        </button>
      </header>
      <main id="main" ref={main} tabIndex={-1} class={`view ${route}`}>
        <View />
      </main>
      {hint.value !== '' && route !== 'transcribe' && (
        <p class="drop-hint number" role="status">
          {hint}
        </p>
      )}
      <StatusRail />
      <div class="hidden" role="status">
        {app.announcer.message}
      </div>
    </div>
  );
}

const DROP = 'Drop a GGUF file or a model’s folder to add it. It stays in this browser. A recording is transcribed.';

/**
 * Accepts dropped and pasted models and recordings anywhere on the page. Any other dropped file would replace the page and end all its work,
 * so it is refused with a hint that stays until the person goes on; so is a pasted one, unless there is text with it.
 */
function takeDroppedFiles({ adding, router, transcription }: App, hint: Signal<string>): () => void {
  const take = (event: DragEvent | ClipboardEvent): void => {
    const isPaste = 'clipboardData' in event;
    const dropped = isPaste ? event.clipboardData : event.dataTransfer;
    hint.value = '';
    if (!dropped?.types.includes('Files')) return;
    const route = router.route.peek();
    const files = [...dropped.files];
    const recordings = files.filter(isSoundFile);
    // What is copied in a word processor comes as a picture too.
    if (isPaste && dropped.types.includes('text/plain') && recordings.length === 0 && !isModelDrop(dropped)) return;
    event.preventDefault();
    if (event.type === 'dragover') {
      hint.value = DROP;
      return;
    }
    if (isModelDrop(dropped) || route === 'models') {
      void adding.take(droppedFiles(dropped));
      router.go('models');
    } else if (recordings.length > 0 || route === 'transcribe') {
      // The view that takes sound tries the others too, and says why they are none.
      void transcription.open(route === 'transcribe' ? files : recordings);
      router.go('transcribe');
    } else hint.value = `${files[0]?.name ?? 'This'} is neither a model nor a recording. ${DROP}`;
  };
  // Moving between two elements of the page is not leaving it.
  const leave = (event: DragEvent): void => void (event.relatedTarget === null && clear());
  const clear = (): void => void (hint.value = '');
  const listeners = { dragover: take, drop: take, paste: take, dragleave: leave, pointerdown: clear, keydown: clear } as const;
  for (const [type, listener] of Object.entries(listeners)) addEventListener(type, listener as EventListener);
  return () => {
    for (const [type, listener] of Object.entries(listeners)) removeEventListener(type, listener as EventListener);
  };
}
