/** The frame around the views: names of the places above, the state of everything in one line below. */
import { useSignal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useApp } from './app.ts';
import type { App } from './app.ts';
import { ChatView } from './chat/chat-view.tsx';
import { DeviceView } from './device/device-view.tsx';
import { droppedFiles, isModelDrop } from './models/dropped-model.ts';
import { ModelsView } from './models/models-view.tsx';
import { ROUTES } from './router.ts';
import type { Route } from './router.ts';
import type { Theme } from './settings.ts';
import { SpeakView } from './speak/speak-view.tsx';
import { StatusRail } from './status-rail.tsx';
import { TranscribeView } from './transcribe/transcribe-view.tsx';
import { CommandList } from './ui/command-list.tsx';
import { useEscape } from './ui/escape.ts';
import { useKeptFocus } from './ui/kept-focus.ts';

const TITLES: Readonly<Record<Route, string>> = {
  chat: 'Chat',
  speak: 'Speak',
  transcribe: 'Transcribe',
  models: 'Models',
  device: 'Device',
};
const VIEWS = { chat: ChatView, speak: SpeakView, transcribe: TranscribeView, models: ModelsView, device: DeviceView } as const;
const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

export function Shell() {
  const app = useApp();
  const route = app.router.route.value;
  const { theme } = app.settings.data.value;
  const View = VIEWS[route];
  const main = useRef<HTMLElement>(null);
  useKeptFocus(main);
  // After what the view itself stops.
  useEscape(() => app.stopSound(), window);
  const over = useSignal(false);
  useEffect(() => takeDroppedModels(app, over), []);
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
      {over.value && route !== 'transcribe' && (
        <p class="drop-hint number">Drop a GGUF file or a model’s folder to add it. It stays in this browser.</p>
      )}
      <StatusRail />
      <div class="hidden" role="status">
        {app.announcer.message}
      </div>
    </div>
  );
}

/**
 * A model may be dropped anywhere. Any other file that is dropped beside what takes it would be opened instead of the page, with all that is
 * going on in it.
 */
function takeDroppedModels({ adding, router }: App, over: Signal<boolean>): () => void {
  const take = (event: DragEvent): void => {
    const dropped = event.dataTransfer;
    over.value = event.type === 'dragover' && (dropped?.types.includes('Files') ?? false);
    if (!dropped?.types.includes('Files')) return;
    event.preventDefault();
    if (event.type !== 'drop' || !(isModelDrop(dropped) || router.route.peek() === 'models')) return;
    void adding.take(droppedFiles(dropped));
    router.go('models');
  };
  // Between two elements of the page nothing is left.
  const leave = (event: DragEvent): void => void (event.relatedTarget === null && (over.value = false));
  addEventListener('dragover', take);
  addEventListener('drop', take);
  addEventListener('dragleave', leave);
  return () => {
    removeEventListener('dragover', take);
    removeEventListener('drop', take);
    removeEventListener('dragleave', leave);
  };
}
