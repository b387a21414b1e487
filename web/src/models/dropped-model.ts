/** What a person drops on the page that may be a model: GGUF files, or a folder. */

const isGguf = (name: string): boolean => /\.gguf$/i.test(name);

/** Whether a model is dropped: what holds it is empty once the event is over. */
export function isModelDrop(dropped: DataTransfer): boolean {
  return [...dropped.files].some(({ name }) => isGguf(name)) || entriesOf(dropped).some(({ isDirectory }) => isDirectory);
}

/** The files of a drop by their paths, which begin with the folder's name where one was dropped. To be called while the event goes on. */
export async function droppedFiles(dropped: DataTransfer): Promise<ReadonlyMap<string, File>> {
  const loose = [...dropped.files];
  const folder = entriesOf(dropped).find(({ isDirectory }) => isDirectory) as FileSystemDirectoryEntry | undefined;
  const files = new Map<string, File>();
  if (folder) await gather(folder, files);
  else for (const file of loose) files.set(file.name, file);
  return files;
}

const entriesOf = (dropped: DataTransfer): FileSystemEntry[] => [...dropped.items].flatMap((item) => item.webkitGetAsEntry() ?? []);

async function gather(folder: FileSystemDirectoryEntry, files: Map<string, File>): Promise<void> {
  const reader = folder.createReader();
  // Browsers give a hundred entries at a time.
  for (let entries = await read(reader); entries.length > 0; entries = await read(reader)) {
    for (const entry of entries) {
      if (entry.isDirectory) await gather(entry as FileSystemDirectoryEntry, files);
      else files.set(entry.fullPath.replace(/^\//, ''), await fileOf(entry as FileSystemFileEntry));
    }
  }
}

const read = (reader: FileSystemDirectoryReader): Promise<FileSystemEntry[]> =>
  new Promise((resolve, reject) => reader.readEntries(resolve, reject));
const fileOf = (entry: FileSystemFileEntry): Promise<File> => new Promise((resolve, reject) => entry.file(resolve, reject));
