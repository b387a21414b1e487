/** Runs the grammar library beside the engine's worker, so that no grammar stops a step. */
import { serveGrammars } from '../../../engine/index.ts';

/** A UMD file: imported as a module it finds no `exports` and puts itself on the global object. */
async function grammarLibrary(): Promise<unknown> {
  await import('@mlc-ai/web-xgrammar');
  return (globalThis as { xgrammar?: unknown }).xgrammar;
}

serveGrammars(
  { grammarLibrary },
  {
    post: (message) => self.postMessage(message),
    onMessage: (callback) => self.addEventListener('message', ({ data }) => callback(data)),
  },
);
