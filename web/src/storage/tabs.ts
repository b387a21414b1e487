/** Communication between the tabs of this page: which stored record has changed, and which jobs are running. */

/** Names a changed record; tabs that show it read it again. */
export interface Change {
  readonly kind: 'conversation' | 'take' | 'transcript';
  readonly id: string;
}

export class Tabs {
  /** Web Locks; undefined on plain http, and where the person lets pages store nothing. */
  readonly #locks = usableLocks();
  readonly #channel = typeof BroadcastChannel === 'undefined' ? undefined : new BroadcastChannel('parley');

  /** Announces a change to the other tabs. */
  tell(change: Change): void {
    this.#channel?.postMessage(change);
  }

  /** Calls `heard` with the id of each record of a kind that another tab has changed. */
  listen(kind: Change['kind'], heard: (id: string) => void): void {
    this.#channel?.addEventListener('message', ({ data }: MessageEvent<Change>) => {
      if (data.kind === kind) heard(data.id);
    });
  }

  /** Holds the lock of a job while `work` runs, so that other tabs know that the job is alive. */
  async hold<T>(job: string, work: () => Promise<T>): Promise<T> {
    const locks = await this.#locks;
    // The lock manager does not wrap errors: what `work` throws is thrown here.
    return locks ? locks.request(lockOf(job), work) : work();
  }

  /**
   * Holds a name as long as this page lives; returns false if another tab keeps holding it. A reloaded page gets it from its predecessor.
   */
  async claim(name: string): Promise<boolean> {
    const locks = await this.#locks;
    if (!locks) return true;
    return new Promise((resolve) => {
      const hold = (): Promise<never> => (resolve(true), new Promise<never>(() => undefined));
      locks.request(lockOf(name), { signal: AbortSignal.timeout(CLAIM_MS) }, hold).catch(() => resolve(false));
    });
  }

  /** Resolves when no tab holds the job; at once where the browser has no Web Locks for the page. */
  async released(job: string): Promise<void> {
    const locks = await this.#locks;
    await locks?.request(lockOf(job), { mode: 'shared' }, () => undefined);
  }

  /** Returns the jobs that any tab holds now. */
  async held(): Promise<ReadonlySet<string>> {
    const locks = await this.#locks;
    const { held = [] } = (await locks?.query()) ?? {};
    return new Set(held.map(({ name }) => name!.replace(lockOf(''), '')));
  }
}

/** Time after which the predecessor of a reloaded page is surely gone, in ms. */
const CLAIM_MS = 1000;

const lockOf = (job: string): string => `parley-job-${job}`;

async function usableLocks(): Promise<LockManager | undefined> {
  const { locks } = navigator as { readonly locks?: LockManager };
  return locks?.query().then(
    () => locks,
    () => undefined,
  );
}
