/** The device page as Markdown, for a bug report. Contains nothing of conversations. */
import type { ProfileEntry } from '../../../engine/api.ts';
import type { App } from '../app.ts';
import type { DeviceFacts } from './facts.ts';

/** Returns everything that the device page shows, as Markdown. */
export function reportText(app: App, facts: DeviceFacts, profile: readonly ProfileEntry[]): string {
  const { selfTest } = app;
  const list = (pairs: readonly (readonly [string, string | number])[]): string =>
    pairs.map(([name, value]) => `- ${name}: ${value}`).join('\n');
  const info = app.loadedInfo.peek();
  const loaded = Object.entries(app.sessions).flatMap(([task, { state }]) => (state.peek().name === 'ready' ? [task] : []));
  // Only answers with a measured rate: one of a few words ends before its rate can be measured.
  const rate = app.conversations.current
    .peek()
    .messages.peek()
    .findLast(({ stats }) => stats.peek()?.rate)
    ?.stats.peek()?.rate;
  const parts = [
    '## Parley device report',
    `${selfTest.verdict()}`,
    list([
      ['date', new Date().toISOString().slice(0, 10)],
      ['models loaded', loaded.join(', ') || 'none'],
      ['last answer', rate ? `${rate.toFixed(1)} tokens/s` : 'not told'],
    ]),
    list(facts.adapter),
    info ? `- kernel family: ${info.adapter.family}\n- features used: ${info.adapter.features.join(', ')}` : '- engine: not loaded',
    `### Features\n${facts.features.join(', ') || 'none'}`,
    `### Limits\n${list(facts.limits)}`,
    `### Page\n${list(facts.browser)}`,
    ...(selfTest.failures.peek().length > 0
      ? [
          `### Failed kernel cases\n${selfTest.failures
            .peek()
            .map(({ suite, name, problem }) => `- ${suite} / ${name}: ${problem}`)
            .join('\n')}`,
        ]
      : []),
    ...(profile.length > 0
      ? [
          `### Profile\n| kernel | times | ms |\n|---|---|---|\n${profile.map(({ label, count, milliseconds }) => `| ${label} | ${count} | ${milliseconds.toFixed(2)} |`).join('\n')}`,
        ]
      : []),
  ];
  return `${parts.join('\n\n')}\n`;
}
