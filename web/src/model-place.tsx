/** Says which model answers, where, and what it is, so that nobody has to look for it in the settings. */
import { useEffect } from 'preact/hooks';
import { useApp } from './app.ts';
import { isWebAddress } from './backend/servers.ts';
import { aboutWords } from './models/about-words.ts';
import type { ModelTask } from './models/manifest.ts';

export function ModelPlace({ task, id }: { task: ModelTask; id: string }) {
  const app = useApp();
  const isServer = app.settings.where.value[task] === 'server';
  const server = isWebAddress(app.server(task)) ? new URL(app.server(task)) : undefined;
  const remote = app.remote;
  // Another host is asked with the first question only: some browsers ask the visitor before they let a page look at the local network.
  const isOwn = server?.origin === location.origin;
  useEffect(() => {
    if (isServer && isOwn) remote.model(task).catch(() => undefined);
  }, [isServer, isOwn, remote]);
  const place = isServer ? `on ${server?.host ?? 'a server'}` : 'in this tab';
  // Lines break between the parts only. The first gives a long name the room that the place leaves (the typeface is a mono).
  return (
    <p class="label place" id={id} style={{ '--place': `${place.length + 1}ch` }}>
      <span class="part">
        <span class="name">{app.choices.name(task) ?? 'the model'}</span> {place}
      </span>
      {aboutWords(app.choices.about(task) ?? {}).map((word) => (
        <>
          {' '}
          <span class="part">· {word}</span>
        </>
      ))}
    </p>
  );
}
