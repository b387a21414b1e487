/** Runs the grammar library beside the engine's worker, so that no grammar stops a step. */
import { serveGrammars } from '../../../engine/index.ts';
import { grammarWasm } from 'virtual:grammar-wasm';

/** A UMD file: the bundler makes a module of it; imported as it is it finds no `exports` and puts itself on the global object. */
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
