/** A model's files as an engine's worker reads them: by name below a folder that is the model's id, with a listing. */
import type { SlicedFile } from '../../../engine/platform/browser.ts';

export interface PlacedFile {
  /** Path below the model's folder, with '/'. */
  readonly name: string;
  readonly size: number;
  /** Where the file is: in the store, picked by the person, or at a URL. */
  readonly at: 'store' | Blob | { readonly url: string };
}

/** What the page tells a worker about a model. */
export interface PlacedModel {
  readonly id: string;
  /** Id in the store, if it differs from `id`. */
  readonly storedAs?: string;
  /** Name of the file that is the model; absent = the folder of all files is. */
  readonly main?: string;
  /** URL of a folder whose files are fetched on demand, in place of `files`. */
  readonly base?: string;
  readonly files: readonly PlacedFile[];
}

/** Returns the path under which an engine opens a model. */
export function modelPath({ id, main, base }: PlacedModel): string {
  if (base !== undefined) return base;
  return main === undefined ? id : `${id}/${main}`;
}

/** Returns how an engine's platform reads the files; `open` opens one. */
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
