import { CONTROL_NAMES, SAMPLING, samplingNumbers } from '../../../engine/sampling.ts';
import type { ControlName } from '../../../engine/sampling.ts';
import { DEFAULT_SETTINGS } from '../settings.ts';
import type { SettingsData } from '../settings.ts';
import { formatStep, seedOf } from '../util.ts';

/** The rarely used sampling controls: all but temperature. */
export const RARE_CONTROLS: readonly ControlName[] = CONTROL_NAMES.filter((name) => name !== 'temperature');

/** Describes the rarely used sampling settings that differ from their defaults. */
export function changedSampling(chat: SettingsData['chat']): readonly string[] {
  const numbers = RARE_CONTROLS.filter((name) => chat[name] !== DEFAULT_SETTINGS.chat[name]).map((name) => {
    const { label, step } = SAMPLING[name].control;
    return `${label.replace(/,.*/, '')} ${formatStep(chat[name], step)}`;
  });
  const { stop = [], sampling } = samplingOf(chat);
  return [
    ...numbers,
    ...(sampling.seed === undefined ? [] : [`seed ${sampling.seed}`]),
    ...(stop.length === 0 ? [] : [stop.length === 1 ? `stop at ${stop[0]!}` : `${stop.length} stops`]),
  ];
}

/** The engine's sampling fields for the page's settings; an empty seed is random. */
export function samplingOf({ seed: typed, maxTokens, stop, ...numbers }: SettingsData['chat']) {
  const seed = seedOf(typed);
  const stops = stop
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  return {
    sampling: { ...samplingNumbers(CONTROL_NAMES, (name) => numbers[name]), ...(seed !== undefined && { seed }) },
    maxTokens,
    ...(stops.length > 0 && { stop: stops }),
  };
}

/** A conversation's title: the first words of its first question. */
export function titleOf(text: string): string {
  const line = text.trim().split('\n')[0]!;
  // Cut between characters, not within one.
  return line.length <= 48
    ? line
    : `${line
        .slice(0, 47)
        .replace(/[\ud800-\udbff]$/, '')
        .trimEnd()}…`;
}
