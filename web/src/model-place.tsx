/** Shows which model answers, where it runs and what it is, so that people need not look in the settings. */
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
  // A host that is only guessed is not contacted before the first question: some browsers ask for permission before a page may access the
  // local network.
  const isMeant = server?.origin === location.origin || app.settings.data.value.servers[task] !== '';
  useEffect(() => {
    if (!isServer || !isMeant) return;
    const leaving = new AbortController();
    remote.model(task, leaving.signal).catch(() => undefined);
    return () => leaving.abort();
  }, [isServer, isMeant, remote]);
  const place = isServer ? `on ${server?.host ?? 'a server'}` : 'in this tab';
  // Lines break only between the parts. The first part gives a long name the room that the place leaves (the font is monospaced).
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
