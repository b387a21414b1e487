/** A plugin of the build: the grammar library's WebAssembly as a file beside the scripts. */
import { readFile } from 'node:fs/promises';
import type { Plugin } from 'vite';

const LIBRARY = /[\\/]@mlc-ai[\\/]web-xgrammar[\\/]lib[\\/]index\.js/;
/** Emscripten's single-file form: the module as a data URL, and where it is decoded. */
const INLINED = /wasmBinaryFile="data:application\/octet-stream;base64,([A-Za-z0-9+/=]+)";if\(!isDataURI\(wasmBinaryFile\)\)\{[^}]*\}/;
const DECODED = 'Promise.resolve().then(()=>getBinarySync(binaryFile))';
const FETCHED =
  'fetch(binaryFile).then(answer=>{if(!answer.ok)throw new Error("the grammar library: status "+answer.status);return answer.arrayBuffer()})';

/**
 * Takes the WebAssembly of @mlc-ai/web-xgrammar out of its script, where it is base64: that takes 100 KB more compressed, and the script has to be parsed and
 * decoded whole. The module `virtual:grammar-wasm` says where the file is; the library reads that from `globalThis.grammarWasm` when it is made. While developing
 * it stays as it is published, and so it does where it `isInline`.
 */
export function grammarWasm({ isInline = false } = {}): Plugin {
  let isFile = false;
  return {
    name: 'grammar-wasm',
    configResolved({ command }) {
      isFile = command === 'build' && !isInline;
    },
    resolveId: (source) => (source === 'virtual:grammar-wasm' ? '\0grammar-wasm' : undefined),
    async load(id) {
      if (id !== '\0grammar-wasm') return undefined;
      if (!isFile) return 'export const grammarWasm = undefined;';
      const library = await this.resolve('@mlc-ai/web-xgrammar');
      const inlined = INLINED.exec(await readFile(library!.id, 'utf8'));
      if (!inlined) throw new Error('@mlc-ai/web-xgrammar no longer has its WebAssembly where web/grammar-wasm.ts looks for it');
      const file = this.emitFile({ type: 'asset', name: 'grammar.wasm', source: Buffer.from(inlined[1]!, 'base64') });
      return `export const grammarWasm = import.meta.ROLLUP_FILE_URL_${file};`;
    },
    transform(code, id) {
      if (!isFile || !LIBRARY.test(id)) return undefined;
      if (!INLINED.test(code) || !code.includes(DECODED))
        throw new Error('@mlc-ai/web-xgrammar reads its WebAssembly otherwise now: see web/grammar-wasm.ts');
      return { code: code.replace(INLINED, 'wasmBinaryFile=globalThis.grammarWasm;').replace(DECODED, FETCHED), map: null };
    },
  };
}
