/** Says which model answers, where, and what it is, so that nobody has to look for it in the settings. */
import { useEffect } from 'preact/hooks';
import { useApp } from './app.ts';
import { aboutWords } from './models/about-words.ts';
import type { ModelTask } from './models/manifest.ts';

export function ModelPlace({ task, id }: { task: ModelTask; id: string }) {
  const app = useApp();
  const { where } = app.settings.data.value;
  const isServer = where[task] === 'server';
  const server = URL.canParse(app.server(task)) ? new URL(app.server(task)) : undefined;
  const remote = app.remote;
  // Another host is asked with the first question only: some browsers ask the visitor before they let a page look at the local network.
  const isOwn = server?.origin === location.origin;
  useEffect(() => {
    if (isServer && isOwn) remote.model(task).catch(() => undefined);
  }, [isServer, isOwn, remote]);
  const words = aboutWords(app.choices.about(task) ?? {});
  return (
    <p class="label place" id={id}>
      <span class="name">{app.choices.name(task) ?? 'the model'}</span>{' '}
      {[isServer ? `on ${server?.host ?? 'a server'}` : 'in this tab', ...words].join(' · ')}
    </p>
  );
}
