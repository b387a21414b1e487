/** Mounts the page, starts what it needs, and registers the service worker of built pages. */
import './style/fonts.css';
import './style/tokens.css';
import './style/base.css';
import './style/shell.css';
import './style/chat.css';
import './style/audio.css';
import './style/models.css';
import { render } from 'preact';
import { App, AppContext } from './app.ts';
import { HubToken } from './models/hub-token.ts';
import { Shell } from './shell.tsx';
import { Settings } from './settings.ts';
import { siteStorage } from './storage/site-storage.ts';
import { registerServiceWorker } from './trusted-types.ts';

const kept = siteStorage('localStorage');
const app = new App(new Settings(kept), new HubToken(kept));
render(
  <AppContext.Provider value={app}>
    <Shell />
  </AppContext.Provider>,
  document.getElementById('app')!,
);
void app.start();

if (import.meta.env.PROD && 'serviceWorker' in navigator) {
  void registerServiceWorker('./sw.js').then(
    (registration) => {
      const offer = (): void => {
        // Without a controller this is the first visit, and the waiting worker replaces no other.
        if (registration.waiting && navigator.serviceWorker.controller) app.updateReady.value = registration.waiting;
      };
      offer();
      registration.addEventListener('updatefound', () => registration.installing?.addEventListener('statechange', offer));
    },
    // Fails where pages may store nothing: the page works, but not offline.
    () => undefined,
  );
}
