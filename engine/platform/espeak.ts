/** The package of espeak-ng (npm @echogarden/espeak-ng-emscripten): its script, and the files of one large data file. */

import type { SpeechLanguage, UnspacedLanguage } from '../util/speech-languages.ts';

/** What the engine uses of espeak-ng's module. */
export interface EspeakModule {
  readonly FS: { writeFile(path: string, bytes: Uint8Array): void };
  readonly HEAPU8: Uint8Array;
  readonly eSpeakNGWorker: new () => EspeakVoice;
}

/** One instance of espeak-ng. */
export interface EspeakVoice {
  /** Chooses the language of what follows; 0 = it is known. */
  set_voice(name: string): number;
  /** Pronounces a text; the result is the address of a text that ends with a zero byte. */
  convert_to_phonemes(text: string, asIpa: boolean): { readonly ptr: number };
}

/** Emscripten's function that makes a module. */
export type MakeEspeak = (options: {
  /** The contents of the data file. */
  getPreloadedPackage(): ArrayBuffer;
  printErr(line: string): void;
}) => Promise<EspeakModule>;

/** The package, opened. */
export interface EspeakPackage {
  readonly make: MakeEspeak;
  /** Reads a file of the data by its path below ESPEAK_DATA; rejects if there is none. */
  file(name: string): Promise<Uint8Array>;
}

/** Folder of espeak-ng's data in its module's file system. */
export const ESPEAK_DATA = '/usr/share/espeak-ng-data/';

/** Languages that espeak-ng pronounces. */
export type EspeakLanguage = Exclude<SpeechLanguage, UnspacedLanguage>;

interface EspeakEntry {
  /** espeak-ng's name for it. */
  readonly voice: string;
  readonly definition: string;
  readonly dictionary: string;
}

const ENGLISH = 'en_dict';
/** What espeak-ng has for each language. Its `en` is British English. */
export const ESPEAK_LANGUAGES: Readonly<Record<EspeakLanguage, EspeakEntry>> = {
  'en-us': { voice: 'en-us', definition: 'lang/gmw/en-US', dictionary: ENGLISH },
  'en-gb': { voice: 'en', definition: 'lang/gmw/en', dictionary: ENGLISH },
  es: { voice: 'es', definition: 'lang/roa/es', dictionary: 'es_dict' },
  fr: { voice: 'fr', definition: 'lang/roa/fr', dictionary: 'fr_dict' },
  hi: { voice: 'hi', definition: 'lang/inc/hi', dictionary: 'hi_dict' },
  it: { voice: 'it', definition: 'lang/roa/it', dictionary: 'it_dict' },
  'pt-br': { voice: 'pt-br', definition: 'lang/roa/pt-BR', dictionary: 'pt_dict' },
};

/** Read at the start: the phonemes of all languages, and the languages' definitions. */
const FIRST = ['phontab', 'phonindex', 'intonations', ...Object.values(ESPEAK_LANGUAGES).map(({ definition }) => definition)];
/** Read when a language is first asked for. */
const DICTIONARIES = new Set(Object.values(ESPEAK_LANGUAGES).map(({ dictionary }) => dictionary));
/** The sounds of the phonemes, more than all of FIRST. Where nothing is synthesised, only the eight bytes that tell its version are read. */
const SOUNDS = { name: 'phondata', bytes: 8 };

/** The files of espeak-ng's data that are read, for those who bring them: `first` for every language (of SOUNDS only the beginning), a dictionary for each. */
export const ESPEAK_FILES = { sounds: SOUNDS, first: FIRST, dictionaries: [...DICTIONARIES] } as const;

/** Emscripten's table of the files in the data file, as it stands in the script. */
const ENTRY = /filename"?:\s*"([^"]*)",\s*"?start"?:\s*(\d+),\s*"?end"?:\s*(\d+)/g;

/** Finds in the package's script where the files of espeak-ng's data lie: the bytes [start, end) of its data file. Throws if there is no such table. */
export function espeakFiles(script: string): ReadonlyMap<string, readonly [start: number, end: number]> {
  const entries = [...script.matchAll(ENTRY)].filter(([, path]) => path!.startsWith(ESPEAK_DATA));
  if (entries.length === 0) throw new Error('espeak-ng.js has no table of its data where engine/platform/espeak.ts looks for it');
  return new Map(entries.map(([, path, start, end]) => [path!.slice(ESPEAK_DATA.length), [Number(start), Number(end)]]));
}

/** The data file, opened. */
interface EspeakData {
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** The package, whose data file is opened each time that one of its files is read: a language may be asked for much later. */
export function openEspeak(make: MakeEspeak, script: string, open: () => Promise<EspeakData>): EspeakPackage {
  const files = espeakFiles(script);
  return {
    make,
    file: async (name) => {
      const place = files.get(name);
      if (!place) throw new Error(`espeak-ng has no file ${name}`);
      const data = await open();
      try {
        return await data.read(place[0], place[1] - place[0]);
      } finally {
        await data.close();
      }
    },
  };
}
