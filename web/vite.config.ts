/** Builds the playground into dist/web: a folder that any static file server can serve, bundled checkpoints included. */
import { createHash } from 'node:crypto';
import {
  createReadStream,
  existsSync,
  linkSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { defineConfig } from 'vite';
import type { Plugin } from 'vite';
import { describeModel, resolveConfig } from '../engine/index.ts';
import { createBrowserPlatform } from '../engine/platform/browser.ts';
import { PACKED_SUFFIXES } from '../server/listener/packed.ts';
import { espeakData } from './espeak.ts';
import { grammarWasm } from './grammar-wasm.ts';
import { sharedShaders } from './shared-shaders.ts';
import { CHUNK_BYTES, VAD_WEIGHTS, aboutOf } from './src/models/manifest.ts';
import type { ModelIndex, ModelManifest } from './src/models/manifest.ts';

const WEB = dirname(fileURLToPath(import.meta.url));
const ROOT = join(WEB, '..');
/**
 * Modules that only declare things, so that a script takes of them what it names: the grammars' thread has no kernels, the engine's no table of recommended models.
 * Hashes of the hub's client: they are for uploads, and the page lists models.
 */
const DECLARING = [/[\\/](engine|sources)[\\/][^?]*\.ts$/, /[\\/]@huggingface[\\/](blake3-jit|xetchunk-wasm)[\\/]/];
const TREESHAKE = { moduleSideEffects: DECLARING.map((test) => ({ test, sideEffects: false })) };
/** Compressing the page takes most of a build's time, as it should: the bundler warns of it, in the midst of what `npm start` says. */
const CHECKS = { bundlerTimings: false };
/** What stands in for Node-only modules when kernel cases run in a page (its self-test). */
const STAND_INS = join(ROOT, 'test', 'support', 'browser');

const CSP = [
  "default-src 'self'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "font-src 'self' data:",
  "connect-src 'self' https: http://localhost:* http://127.0.0.1:* http:",
  "worker-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types parley',
].join('; ');

/** Describes every checkpoint of models/: files, sizes, SHA-256 of each chunk, and what views say of it before it is loaded. */
async function bundledModels(): Promise<ModelIndex> {
  const folder = join(ROOT, 'models');
  const names = readdirSync(folder).filter((name) => existsSync(join(folder, name, 'config.json')));
  return { models: await Promise.all(names.map((name) => describeBundled(name, join(folder, name)))) };
}

async function describeBundled(id: string, folder: string): Promise<ModelManifest> {
  const names = readdirSync(folder).filter((name) => name !== 'README.md' && statSync(join(folder, name)).isFile());
  const contents = new Map(names.map((name) => [name, readFileSync(join(folder, name))]));
  const platform = createBrowserPlatform({
    shaders: new Map(),
    file: async (path) => {
      const bytes = contents.get(path.slice(id.length + 1));
      return bytes && new Blob([new Uint8Array(bytes)]);
    },
    list: (path) => (path === id ? names : undefined),
  });
  const description = await describeModel(platform, { path: id, id }, resolveConfig({}));
  const files = [...contents].map(([name, bytes]) => {
    const sha256: string[] = [];
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      sha256.push(
        createHash('sha256')
          .update(bytes.subarray(at, at + CHUNK_BYTES))
          .digest('hex'),
      );
    }
    return { name, size: bytes.length, url: `models/${id}/${name}`, sha256 };
  });
  const { task, architecture: modelType } = description;
  return { id, task, modelType, source: 'bundled', files, about: aboutOf(description) };
}

/** Serves models/ while developing; links (or copies) it into the build. */
function modelFolder(): Plugin {
  let out = '';
  return {
    name: 'parley-models',
    configResolved({ build }) {
      out = build.outDir;
    },
    configureServer(server) {
      server.middlewares.use('/models', (request, response, next) => {
        const path = join(ROOT, 'models', decodeURIComponent(request.url ?? '').replace(/\?.*$/, ''));
        if (request.url?.startsWith('/index.json'))
          void bundledModels().then((index) => response.setHeader('content-type', 'application/json').end(JSON.stringify(index)), next);
        else if (!path.includes('..') && existsSync(path) && statSync(path).isFile()) createReadStream(path).pipe(response);
        else next();
      });
    },
    async closeBundle() {
      const index = await bundledModels();
      for (const model of index.models) {
        const target = join(out, 'models', model.id);
        mkdirSync(target, { recursive: true });
        for (const name of [...model.files.map((file) => file.name), 'README.md'])
          place(join(ROOT, 'models', model.id, name), join(target, name));
      }
      const vad = dirname(VAD_WEIGHTS);
      mkdirSync(join(out, vad), { recursive: true });
      for (const name of readdirSync(join(ROOT, vad))) place(join(ROOT, vad, name), join(out, vad, name));
      writeFileSync(join(out, 'models', 'index.json'), JSON.stringify(index));
    },
  };
}

function place(from: string, to: string): void {
  if (!existsSync(from)) return;
  rmSync(to, { force: true });
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

/** Lets the files of test/kernels run in a page: vitest and the test device are replaced for them, and for nothing else. */
function kernelCases(): Plugin {
  const below = (folder: string, path: string | undefined): boolean => path !== undefined && path.startsWith(join(ROOT, folder));
  return {
    name: 'parley-kernel-cases',
    enforce: 'pre',
    resolveId(source, importer) {
      if (!below('test', importer)) return undefined;
      if (source === 'vitest') return join(STAND_INS, 'vitest.ts');
      return /^\.{1,2}\/(support\/)?device\.ts$/.test(source) ? join(STAND_INS, 'device.ts') : undefined;
    },
  };
}

/** What pages do not use of the engine, by file: how Japanese is read needs a dictionary that they have not, and the playground has no setting for LoRA adapters. */
const UNUSED: Readonly<Record<string, string>> = {
  [join(ROOT, 'engine', 'text', 'japanese.ts')]: "export const createJapanese = () => { throw new Error('no Japanese in pages'); };",
  [join(ROOT, 'engine', 'weights', 'lora', 'open-lora.ts')]:
    "export const openLora = () => { throw new Error('no LoRA adapters in the playground'); };",
};

function withoutUnused(): Plugin {
  return { name: 'parley-without-unused', enforce: 'pre', load: (id) => UNUSED[id] };
}

/** What is worth compressing; fonts and weights are dense already. */
const LOOSE = /\.(bin|html|js|css|json|svg|wasm|webmanifest)$/;
/** A second for the whole page; 11 takes seven for a twentieth less. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
const PACKERS: Readonly<Record<string, (bytes: Buffer) => Promise<Buffer>>> = {
  br: (bytes) => promisify(brotliCompress)(bytes, BROTLI),
  gzip: (bytes) => promisify(gzip)(bytes, { level: 9 }),
};

/** Writes compressed copies beside the files of the page (models stay as they are: they are fetched in parts). */
function packedCopies(): Plugin {
  let out = '';
  return {
    name: 'parley-packed-copies',
    apply: 'build',
    configResolved({ build }) {
      out = build.outDir;
    },
    closeBundle: {
      order: 'post',
      async handler() {
        const names = readdirSync(out, { recursive: true }).map(String);
        const loose = names.filter((name) => LOOSE.test(name) && !name.startsWith('models'));
        await Promise.all(loose.flatMap((name) => Object.keys(PACKERS).map((encoding) => pack(join(out, name), encoding))));
      },
    },
  };
}

async function pack(file: string, encoding: string): Promise<void> {
  const bytes = readFileSync(file);
  const packed = await PACKERS[encoding]!(bytes);
  if (packed.length < bytes.length) writeFileSync(file + PACKED_SUFFIXES[encoding]!, packed);
}

/** Files of web/public, which the build copies as they are, by name. */
function publicFiles(): ReadonlyMap<string, Buffer> {
  const folder = join(WEB, 'public');
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

/** Writes the list of built files into the service worker, so that a new build is a new worker; and the CSP into the page. */
function offlineShell(): Plugin {
  return {
    name: 'parley-offline-shell',
    apply: 'build',
    transformIndexHtml: (html) => html.replace('<head>', `<head>\n    <meta http-equiv="Content-Security-Policy" content="${CSP}" />`),
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const worker = bundle['sw.js'];
        if (worker?.type !== 'chunk') throw new Error('the build has no sw.js');
        const files = Object.keys(bundle).filter((name) => name !== 'sw.js' && !name.endsWith('.map'));
        const hash = createHash('sha256');
        for (const name of files) {
          const item = bundle[name]!;
          hash.update(name).update(item.type === 'chunk' ? item.code : item.source);
        }
        // Their headers are kept with the answers, so other headers are another version.
        const copied = publicFiles();
        for (const [name, bytes] of copied) hash.update(name).update(bytes);
        hash.update(readFileSync(join(ROOT, VAD_WEIGHTS)));
        const plain = [...copied.keys()].filter((name) => !name.startsWith('_'));
        const shell = {
          version: hash.digest('hex').slice(0, 12),
          files: ['./', 'models/index.json', VAD_WEIGHTS, ...files.filter((name) => name !== 'index.html'), ...plain],
        };
        const placeholder = /(['"`])__SHELL__\1/;
        if (!placeholder.test(worker.code)) throw new Error('sw.js has lost its placeholder');
        worker.code = worker.code.replace(placeholder, JSON.stringify(JSON.stringify(shell)));
      },
    },
  };
}

export default defineConfig({
  root: WEB,
  base: './',
  cacheDir: join(ROOT, 'node_modules', '.vite'),
  plugins: [modelFolder(), sharedShaders(), kernelCases(), offlineShell(), packedCopies()],
  worker: {
    format: 'es',
    plugins: () => [sharedShaders(), grammarWasm(), espeakData(), withoutUnused(), kernelCases()],
    rollupOptions: { treeshake: TREESHAKE, checks: CHECKS },
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  server: { fs: { allow: [ROOT] } },
  build: {
    outDir: join(ROOT, 'dist', 'web'),
    emptyOutDir: true,
    target: 'es2023',
    modulePreload: false,
    rollupOptions: {
      treeshake: TREESHAKE,
      checks: CHECKS,
      input: { index: join(WEB, 'index.html'), sw: join(WEB, 'src', 'sw.ts') },
      output: { entryFileNames: (chunk) => (chunk.name === 'sw' ? 'sw.js' : 'assets/[name]-[hash].js') },
    },
  },
});
