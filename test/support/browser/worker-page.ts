/** A page with nothing but a worker of test/support/browser, the bundled models and the clip beside it, for any browser. Runs in Node. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { espeakData } from '../../../web/espeak.ts';
import { sharedShaders } from '../../../web/shared-shaders.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const HERE = join(ROOT, 'test', 'support', 'browser');

/** Builds `entry` (such as parity-worker.ts) into a folder to be served, which is returned. */
export async function buildWorkerPage(entry: string, name: string): Promise<string> {
  const folder = join(ROOT, '.parley', name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  symlinkSync(join(ROOT, 'models'), join(folder, 'models'));
  symlinkSync(join(ROOT, 'test', 'fixtures', 'parley-transcribe', 'clip.wav'), join(folder, 'clip.wav'));
  writeFileSync(join(folder, 'index.html'), `<!doctype html><title>${name}</title>`);
  await build({
    configFile: false,
    root: HERE,
    logLevel: 'error',
    plugins: [sharedShaders(), espeakData()],
    build: {
      outDir: folder,
      emptyOutDir: false,
      target: 'es2023',
      modulePreload: false,
      rollupOptions: { input: join(HERE, entry), output: { entryFileNames: 'worker.js', codeSplitting: false } },
    },
  });
  return folder;
}

/** To be evaluated in that page: starts its worker, tells it where models and clip are, and resolves with its one answer. */
export function askWorker(): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const worker = new Worker('worker.js', { type: 'module' });
    worker.addEventListener('error', (event) => reject(new Error(event.message || 'the worker did not start')));
    worker.addEventListener('message', ({ data }) => (data.problem ? reject(new Error(data.problem)) : resolve(data)));
    worker.postMessage({ models: 'models', clip: 'clip.wav' });
  });
}
