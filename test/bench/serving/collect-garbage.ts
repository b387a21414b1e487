/** Lets a benchmark see what a process holds and not what it has not yet thrown away. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** The signal that collects. */
export const COLLECT = 'SIGUSR2';

/** From now on COLLECT makes this process collect its garbage, twice: what the first finds may free more. */
export function collectOnSignal(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  process.on(COLLECT, () => {
    collect();
    collect();
  });
}
