/** A model's files as an engine's worker reads them: by name below the model's id, which is their folder, with a listing of it. */
import type { SlicedFile } from '../../../engine/platform/browser.ts';

export interface PlacedFile {
  /** Below the model's folder, with '/'. */
  readonly name: string;
  readonly size: number;
  /** In the store, picked by the person, or at an address. */
  readonly at: 'store' | Blob | { readonly url: string };
}

/** What the page tells a worker of a model. */
export interface PlacedModel {
  readonly id: string;
  /** What the store has it as, where that is not its id. */
  readonly storedAs?: string;
  /** The file that stands for the model; absent: the folder of all. */
  readonly main?: string;
  /** Address of a folder whose files are fetched when they are wanted, in place of `files`. */
  readonly base?: string;
  readonly files: readonly PlacedFile[];
}

/** The path that an engine is given for a model. */
export function modelPath({ id, main, base }: PlacedModel): string {
  if (base !== undefined) return base;
  return main === undefined ? id : `${id}/${main}`;
}

/** How an engine's platform reads the files; `open` opens one. */
export function modelFiles(
  { id, files }: PlacedModel,
  open: (file: PlacedFile) => Promise<SlicedFile | undefined>,
): { readonly file: (path: string) => Promise<SlicedFile | undefined>; readonly list: (path: string) => readonly string[] | undefined } {
  const byPath = new Map(files.map((file) => [`${id}/${file.name}`, file]));
  return {
    file: async (path) => {
      const file = byPath.get(path);
      return file && open(file);
    },
    list: (path) => {
      const inside = [...byPath.keys()].filter((name) => name.startsWith(`${path}/`)).map((name) => name.slice(path.length + 1));
      return inside.length === 0 ? undefined : [...new Set(inside.map((name) => name.split('/')[0]!))];
    },
  };
}
