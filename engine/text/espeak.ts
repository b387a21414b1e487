/** espeak-ng, which pronounces text: npm @echogarden/espeak-ng-emscripten, the same code in Node and browsers. Of its data only what is needed is read. */
import { ESPEAK_DATA, ESPEAK_FILES, ESPEAK_LANGUAGES } from '../platform/espeak.ts';
import type { EspeakLanguage, EspeakModule, EspeakPackage, EspeakVoice } from '../platform/espeak.ts';

/** An instance of espeak-ng. */
export class Espeak {
  readonly #files: EspeakPackage;
  readonly #module: EspeakModule;
  readonly #voice: EspeakVoice;
  readonly #dictionaries = new Map<string, Promise<void>>();

  private constructor(files: EspeakPackage, module: EspeakModule) {
    this.#files = files;
    this.#module = module;
    this.#voice = new module.eSpeakNGWorker();
  }

  /** Starts an instance, which takes about 35 ms. */
  static async start(files: EspeakPackage): Promise<Espeak> {
    // The data file is given without its bytes, so that all its files are there, and empty.
    const module = await files.make({ getPreloadedPackage: () => new ArrayBuffer(0), printErr: () => {} });
    const { sounds, first } = ESPEAK_FILES;
    const contents = await Promise.all([sounds.name, ...first].map(async (name) => [name, await files.file(name)] as const));
    for (const [name, bytes] of contents)
      module.FS.writeFile(ESPEAK_DATA + name, name === sounds.name ? bytes.subarray(0, sounds.bytes) : bytes);
    return new Espeak(files, module);
  }

  /**
   * Pronounces a text without punctuation, which takes less than a millisecond a sentence: IPA with `_` between phonemes, where a space between words does not
   * part them. Words of another language, English as a rule, stand between marks: `(en)_h_ə_l_ˈəʊ_(es)`.
   */
  async phonemes(text: string, language: EspeakLanguage): Promise<string> {
    const { voice, dictionary } = ESPEAK_LANGUAGES[language];
    await Promise.all([ESPEAK_LANGUAGES['en-us'].dictionary, dictionary].map((name) => this.#dictionary(name)));
    this.#voice.set_voice(voice);
    // A zero byte would end the text.
    const { ptr } = this.#voice.convert_to_phonemes(text.replaceAll('\0', ' '), true);
    const { HEAPU8 } = this.#module;
    return new TextDecoder().decode(HEAPU8.slice(ptr, HEAPU8.indexOf(0, ptr))).replaceAll(' | ', ' ');
  }

  #dictionary(name: string): Promise<void> {
    const known =
      this.#dictionaries.get(name) ?? this.#files.file(name).then((bytes) => this.#module.FS.writeFile(ESPEAK_DATA + name, bytes));
    this.#dictionaries.set(name, known);
    // What could not be fetched is asked for again by the next text.
    known.catch(() => this.#dictionaries.delete(name));
    return known;
  }
}
