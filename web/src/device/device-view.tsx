/** The device page: the adapter and its features, the kernel self-test, and a profile of a step; all of it can be copied as a report. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { ProfileEntry } from '../../../engine/api.ts';
import { useApp } from '../app.ts';
import { whyNotHere } from '../state-words.ts';
import { copyText, formatCount } from '../util.ts';
import { collectFacts } from './facts.ts';
import type { DeviceFacts } from './facts.ts';
import { ProfilePanel } from './profile-panel.tsx';
import { reportText } from './report.ts';

export function DeviceView() {
  const app = useApp();
  const facts = useSignal<DeviceFacts | undefined>(undefined);
  const profile = useSignal<readonly ProfileEntry[]>([]);
  const copied = useSignal('');
  const { selfTest } = app;
  const why = whyNotHere(app.environment.value);
  useEffect(() => {
    void collectFacts().then((found) => (facts.value = found));
  }, []);
  const copy = async (): Promise<void> => {
    if (facts.value)
      copied.value = (await copyText(reportText(app, facts.value, profile.value))) ? 'Copied' : 'The browser does not allow copying here';
  };
  return (
    <div class="page single device-page">
      <header class="row spread">
        <div>
          <h1>{verdict(app.environment.value)}</h1>
          <p>{why ?? selfTest.verdict()}</p>
        </div>
        <div class="row">
          <button class="primary" onClick={() => void copy()}>
            Copy report
          </button>
          <span class="label" role="status">
            {copied}
          </span>
        </div>
      </header>
      {why === undefined && (
        <>
          <SelfTestPanel />
          <SplitSetting />
          <ProfilePanel profile={profile} />
        </>
      )}
      {facts.value && <Facts facts={facts.value} />}
      <Log />
    </div>
  );
}

function verdict(environment: string): string {
  if (environment === 'ready') return 'This browser computes on a graphics adapter.';
  if (environment === 'software') return 'This browser computes on a software adapter: correct, but slow.';
  if (environment === 'insecure') return 'Nothing can be computed here: the address is not secure.';
  if (environment === 'unknown') return 'Looking for a graphics adapter.';
  return 'This browser offers the page no WebGPU adapter.';
}

function SelfTestPanel() {
  const { selfTest } = useApp();
  const state = selfTest.state.value;
  const failures = selfTest.failures.value;
  return (
    <section class="stack" aria-label="Kernel self-test">
      <h2>Kernel self-test</h2>
      <p class="label">The project's own kernel cases, with and without optional features, each against a plain CPU reference.</p>
      <div class="row">
        <button class={state === 'running' ? 'running' : ''} onClick={() => (state === 'running' ? selfTest.stop() : selfTest.start())}>
          {state === 'running' ? 'Stop' : 'Test the kernels'}
        </button>
        <span class="number self-test-count" data-state={state} data-failed={failures.length}>
          {state !== 'idle' && `${selfTest.results.value.length - failures.length} right, ${failures.length} wrong`}
        </span>
      </div>
      {state === 'running' && <progress value={selfTest.results.value.length} max={selfTest.total.value || 1} aria-label="Cases run" />}
      {failures.length > 0 && (
        <ul class="failures">
          {failures.map(({ suite, name, problem }) => (
            <li key={`${suite} ${name}`}>
              <p class="number">
                {suite} · {name}
              </p>
              <p class="label">{problem}</p>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function SplitSetting() {
  const { settings } = useApp();
  return (
    <section class="stack" aria-label="Several graphics cards">
      <h2>Several graphics cards</h2>
      <div class="checks">
        <label>
          <input
            type="checkbox"
            checked={settings.value.bothAdapters}
            onChange={(event) => settings.set('bothAdapters', event.currentTarget.checked)}
          />
          Split the chat model over both cards when it is next loaded
        </label>
      </div>
      <p class="label">Slower for a model that fits one card; for one that does not, it is what lets it run.</p>
    </section>
  );
}

function Facts({ facts }: { facts: DeviceFacts }) {
  const app = useApp();
  const info = app.loadedInfo.value;
  const { longestTask, slowestInteraction } = app.responsiveness;
  const engine: [string, string][] = info
    ? [
        ['kernel family', info.adapter.family],
        ['features used', info.adapter.features.join(', ') || 'none'],
      ]
    : facts.limits.length > 0
      ? [['engine', 'not loaded yet; the kernel family is chosen then']]
      : [];
  return (
    <div class="facts">
      <Pairs title="Adapter" pairs={[...facts.adapter, ...engine]} />
      {facts.limits.length > 0 && (
        <>
          <Pairs title="Limits" pairs={facts.limits.map(([name, value]) => [name, formatCount(value)])} />
          <section>
            <h2>Features</h2>
            <p class="number wrap">{facts.features.join(', ') || 'none'}</p>
          </section>
        </>
      )}
      <Pairs
        title="Page"
        pairs={[...facts.browser, ['longest task', `${longestTask.value} ms`], ['slowest interaction', `${slowestInteraction.value} ms`]]}
      />
    </div>
  );
}

function Pairs({ title, pairs }: { title: string; pairs: readonly (readonly [string, string])[] }) {
  return (
    <section>
      <h2>{title}</h2>
      <dl class="pairs">
        {pairs.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Log() {
  const app = useApp();
  const lines = Object.values(app.sessions).flatMap((session) => session.log.value);
  if (lines.length === 0) return null;
  return (
    <details>
      <summary>Engine log, {lines.length} lines</summary>
      <pre class="log">{lines.join('\n')}</pre>
    </details>
  );
}
