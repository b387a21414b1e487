/** What the tabs of this page tell each other: which stored thing has changed, and which job somebody still works on. */

/** Names what was changed in the store; whoever shows it reads it again. */
export interface Change {
  readonly kind: 'conversation' | 'take' | 'transcript';
  readonly id: string;
}

export class Tabs {
  /** Undefined on plain http, and where the person lets pages keep nothing. */
  readonly #locks = usableLocks();
  readonly #channel = typeof BroadcastChannel === 'undefined' ? undefined : new BroadcastChannel('parley');

  /** Tells the other tabs. */
  tell(change: Change): void {
    this.#channel?.postMessage(change);
  }

  /** Hears what other tabs have changed. */
  listen(kind: Change['kind'], heard: (id: string) => void): void {
    this.#channel?.addEventListener('message', ({ data }: MessageEvent<Change>) => {
      if (data.kind === kind) heard(data.id);
    });
  }

  /** Holds a job's name while `work` goes on, so that other tabs know that it lives. */
  async hold<T>(job: string, work: () => Promise<T>): Promise<T> {
    const locks = await this.#locks;
    // The lock manager wraps nothing: what `work` throws comes out.
    return locks ? locks.request(lockOf(job), work) : work();
  }

  /** Holds a name for as long as this page lives; false when another tab goes on holding it. A page that is loaded again gets it from the one before. */
  async claim(name: string): Promise<boolean> {
    const locks = await this.#locks;
    if (!locks) return true;
    return new Promise((resolve) => {
      const hold = (): Promise<never> => (resolve(true), new Promise<never>(() => undefined));
      locks.request(lockOf(name), { signal: AbortSignal.timeout(CLAIM_MS) }, hold).catch(() => resolve(false));
    });
  }

  /** Resolves when no tab holds the job; at once where the browser gives the page no locks. */
  async released(job: string): Promise<void> {
    const locks = await this.#locks;
    await locks?.request(lockOf(job), { mode: 'shared' }, () => undefined);
  }

  /** The jobs that any tab holds now. */
  async held(): Promise<ReadonlySet<string>> {
    const locks = await this.#locks;
    const { held = [] } = (await locks?.query()) ?? {};
    return new Set(held.map(({ name }) => name!.replace(lockOf(''), '')));
  }
}

/** ms in which the page before this one has surely gone. */
const CLAIM_MS = 1000;

const lockOf = (job: string): string => `parley-job-${job}`;

async function usableLocks(): Promise<LockManager | undefined> {
  const { locks } = navigator as { readonly locks?: LockManager };
  return locks?.query().then(
    () => locks,
    () => undefined,
  );
}
