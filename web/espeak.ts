/** A plugin of the build: espeak-ng's data as files beside the scripts, of which the page fetches what a language needs. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Plugin } from 'vite';
import { ESPEAK_FILES, espeakFiles } from '../engine/platform/espeak.ts';

const NAME = '@echogarden/espeak-ng-emscripten';
/** The script of espeak-ng. */
export const ESPEAK_SCRIPT = createRequire(import.meta.url).resolve(NAME);

/** A file with some of espeak-ng's. */
export interface EspeakPart {
  readonly name: string;
  readonly bytes: Buffer;
  /** Where the files lie in it. */
  readonly files: Readonly<Record<string, readonly [start: number, end: number]>>;
}

/** What is read of espeak-ng's data: one part for all languages, and one for each dictionary. */
export function espeakParts(): readonly EspeakPart[] {
  const places = espeakFiles(readFileSync(ESPEAK_SCRIPT, 'utf8'));
  const data = readFileSync(join(dirname(ESPEAK_SCRIPT), 'espeak-ng.data'));
  const { sounds, first, dictionaries } = ESPEAK_FILES;
  const part = (name: string, names: readonly string[]): EspeakPart => {
    const files: Record<string, readonly [number, number]> = {};
    const pieces: Buffer[] = [];
    let at = 0;
    for (const file of names) {
      const place = places.get(file);
      if (!place) throw new Error(`${NAME} has no ${file}`);
      const piece = data.subarray(place[0], file === sounds.name ? place[0] + sounds.bytes : place[1]);
      pieces.push(piece);
      files[file] = [at, (at += piece.length)];
    }
    return { name, bytes: Buffer.concat(pieces), files };
  };
  return [part('first', [sounds.name, ...first]), ...dictionaries.map((name) => part(name, [name]))];
}

/** Where each file lies, as a JavaScript object: `{file: [index of its part, start, end]}`. */
export function placesIn(parts: readonly EspeakPart[]): string {
  return JSON.stringify(Object.fromEntries(parts.flatMap(({ files }, i) => Object.entries(files).map(([name, at]) => [name, [i, ...at]]))));
}

/** The module `virtual:espeak`: the package of espeak-ng as an EspeakPackage, whose data is fetched from files beside the scripts. */
export function espeakData(): Plugin {
  let isFile = false;
  return {
    name: 'espeak-data',
    configResolved({ command }) {
      isFile = command === 'build';
    },
    resolveId: (source) => (source === 'virtual:espeak' ? '\0espeak' : undefined),
    load(id) {
      if (id !== '\0espeak') return undefined;
      const parts = espeakParts();
      const urls = parts.map(({ name, bytes }) =>
        isFile
          ? `import.meta.ROLLUP_FILE_URL_${this.emitFile({ type: 'asset', name: `espeak-${name}.bin`, source: bytes })}`
          : `'data:application/octet-stream;base64,${bytes.toString('base64')}'`,
      );
      return `
const urls = [${urls.join(', ')}];
const places = ${placesIn(parts)};
const fetched = [];
const fetchPart = async (url) => {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(url + ' could not be fetched: HTTP ' + answer.status);
  return new Uint8Array(await answer.arrayBuffer());
};
const part = (i) => {
  fetched[i] ??= fetchPart(urls[i]);
  fetched[i].catch(() => delete fetched[i]);
  return fetched[i];
};
const file = async (name) => {
  const [i, start, end] = places[name];
  return (await part(i)).subarray(start, end);
};
export const espeak = async () => ({ make: (await import('${NAME}')).default, file });
`;
    },
  };
}
