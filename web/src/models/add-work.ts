/** Work of adding a model: it is looked up and described, and then listed. Continues while another view is open. */
import { signal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import { SourceError } from '../../../sources/index.ts';
import { isAbort, toFailure } from '../failure.ts';
import type { Failure } from '../failure.ts';
import { formatBytes } from '../util.ts';
import { findModel } from './find-model.ts';
import { requireFit, roomHere } from './fit.ts';
import { manifestBytes } from './manifest.ts';
import type { ModelManifest } from './manifest.ts';
import { describeFolder, describeGguf } from './picked-model.ts';
import type { RecommendedPlace } from './recommended-work.ts';

export class AddWork {
  /** Result of the last attempt, for people. */
  readonly note = signal('');
  readonly problem: Signal<Failure | undefined> = signal(undefined);
  /** Aborts the look-up in progress; undefined when there is none. */
  readonly looking: Signal<AbortController | undefined> = signal(undefined);
  readonly #place: RecommendedPlace;

  constructor(place: RecommendedPlace) {
    this.#place = place;
  }

  /** Looks a model up and lists it with its size; nothing is fetched until the person asks for it there. */
  lookUp(text: string): Promise<void> {
    return this.#look(async (signal) => {
      const { library, finder } = this.#place;
      const manifest = await findModel(text, finder, signal);
      const { id } = manifest;
      const here = [...library.index.peek(), ...library.stored.peek().map((stored) => stored.manifest)].find((model) => model.id === id);
      if (here && addresses(here) === addresses(manifest)) return `${id} is in the list below already`;
      if (here) throw new SourceError('refused', `another ${id} is in the list below: delete that one to have this one`);
      requireFit(manifest, await roomHere());
      library.add(manifest);
      return `${manifest.id} has ${formatBytes(manifestBytes(manifest))} to download; it is listed below`;
    });
  }

  /** Adds the person's own files, keyed by path. */
  open(files: ReadonlyMap<string, File>, describe: typeof describeFolder): Promise<void> {
    return this.#look((signal) => this.#copy(files, describe, signal));
  }

  /** Adds dropped files: a folder, or GGUF files. */
  take(dropped: Promise<ReadonlyMap<string, File>>): Promise<void> {
    return this.#look(async (signal) => {
      const files = await dropped;
      const isFolder = [...files.keys()].some((path) => path.includes('/'));
      return this.#copy(files, isFolder ? describeFolder : describeGguf, signal);
    });
  }

  /** Copies files to the store, if they are a model that can be loaded and there is room. */
  async #copy(files: ReadonlyMap<string, File>, describe: typeof describeFolder, signal: AbortSignal): Promise<string> {
    const picked = await describe(files, this.#place.finder.describe, signal);
    requireFit(picked.manifest, await roomHere());
    this.#place.library.add(picked.manifest);
    void this.#place.works.of(picked.manifest.id).copy(picked);
    return `${picked.manifest.id} is copied into this browser's storage; it is listed below`;
  }

  /** Runs a look-up, aborting one that is still in progress. */
  async #look(what: (signal: AbortSignal) => Promise<string>): Promise<void> {
    this.looking.peek()?.abort();
    const abort = new AbortController();
    this.looking.value = abort;
    this.note.value = '';
    this.problem.value = undefined;
    try {
      this.note.value = await what(abort.signal);
    } catch (error) {
      if (!abort.signal.aborted && !isAbort(error)) this.problem.value = toFailure(error);
    }
    if (this.looking.peek() === abort) this.looking.value = undefined;
  }
}

/** The addresses of a model's files, one per line; those of a hub contain the commit. */
const addresses = ({ files }: ModelManifest): string => files.map(({ url }) => url).join('\n');
