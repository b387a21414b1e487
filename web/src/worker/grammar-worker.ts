/** Runs the grammar library in a worker of its own, so that no grammar blocks a step of the engine. */
import { serveGrammars } from '../../../engine/index.ts';
import { grammarWasm } from 'virtual:grammar-wasm';

/**
 * Imports the library, a UMD file. The bundler makes a module of it; imported unbundled, it finds no `exports` and puts itself on the
 * global object.
 */
async function grammarLibrary(): Promise<unknown> {
  // Where the build put the library's WebAssembly (web/grammar-wasm.ts).
  Object.assign(globalThis, { grammarWasm });
  const imported: object = await import('@mlc-ai/web-xgrammar');
  return 'TokenizerInfo' in imported ? imported : (globalThis as { xgrammar?: unknown }).xgrammar;
}

serveGrammars(
  { grammarLibrary },
  {
    post: (message) => self.postMessage(message),
    onMessage: (callback) => self.addEventListener('message', ({ data }) => callback(data)),
  },
);
