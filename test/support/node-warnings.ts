/** What Node warns of while a test runs. */
import { onTestFinished } from 'vitest';

/** Returns a list that grows by each warning of this process, such as that of too many listeners, until the test that calls it has finished. */
export function nodeWarnings(): readonly Error[] {
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  return warnings;
}
