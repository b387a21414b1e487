/** Models that are dropped on the page: GGUF files, or a folder. */

const isGguf = (name: string): boolean => /\.gguf$/i.test(name);

/** Whether a drop is a model. Must be called during the event, after which the DataTransfer is empty. */
export function isModelDrop(dropped: DataTransfer): boolean {
  return [...dropped.files].some(({ name }) => isGguf(name)) || entriesOf(dropped).some(({ isDirectory }) => isDirectory);
}

/** Returns the files of a drop by path, which begins with the folder's name where one was dropped. Must be called during the event. */
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
  // Browsers return at most a hundred entries per call.
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
