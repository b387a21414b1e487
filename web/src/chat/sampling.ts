import { CONTROL_NAMES, samplingNumbers } from '../../../engine/sampling.ts';
import type { SettingsData } from '../settings.ts';

/** The engine's sampling fields for the page's settings; an empty seed is random. */
export function samplingOf({ seed, maxTokens, stop, ...numbers }: SettingsData['chat']) {
  const stops = stop
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  return {
    sampling: { ...samplingNumbers(CONTROL_NAMES, (name) => numbers[name]), ...(/^-?\d+$/.test(seed.trim()) && { seed: Number(seed) }) },
    maxTokens,
    ...(stops.length > 0 && { stop: stops }),
  };
}

/** The first words of the first question. */
export function titleOf(text: string): string {
  const line = text.trim().split('\n')[0]!;
  return line.length <= 48 ? line : `${line.slice(0, 47).trimEnd()}…`;
}
