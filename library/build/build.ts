/** `npm run package`: writes the packages to publish into dist/package/: `parley`, `parley-models` with the bundled models, and `parley-espeak`. */
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { spawnSync } from 'node:child_process';
import { builtinModules } from 'node:module';
import { join, resolve } from 'node:path';
import { build } from 'vite';
import { writeEspeak } from './espeak.ts';
import { collectPackages, describeLicences } from './licences.ts';
import { grammarWasm } from '../../web/grammar-wasm.ts';
import { sharedShaders } from '../../web/shared-shaders.ts';
import {
  ESPEAK,
  NODE_PLATFORM,
  ROOT,
  entryName,
  espeakAt,
  espeakBeside,
  noNode,
  packageLayout,
  pageLayout,
  threadEntries,
} from './plugins.ts';

const OUT = resolve(process.env['PARLEY_PACKAGE_FOLDER'] ?? join(ROOT, 'dist', 'package'));
const LIBRARY = join(ROOT, 'library');
const PARLEY = join(OUT, 'parley');
const MODELS = join(OUT, 'parley-models');
const NODE = join(PARLEY, 'dist', 'node');
const BROWSER = join(PARLEY, 'dist', 'browser');
const TYPES = join(PARLEY, 'dist', 'types');
const PAGE = join(PARLEY, 'dist', 'page');

interface Manifest {
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}
const root = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;

const MODELS_README = `# parley-models

The three small models that the package \`parley\` starts with: chat, speech and transcription. Each folder of \`models/\` has a card that says what it is,
what it was made of, and what it cannot do. They are for trying things out; docs/models.md of Parley names models for work.
`;

/** Dependencies that only the repository needs: tsx runs TypeScript sources, which a package does not have. */
const BUILD_ONLY: readonly string[] = ['tsx', 'vite'];

/** Packages that are imported only if they are installed. */
const ABSENT: readonly string[] = ['parley-models', ESPEAK];

/** Folders of the packages that are compiled in. Typefaces are added here, because they come with style sheets, which are no modules. */
const compiled = new Set<string>(
  Object.keys(root.dependencies)
    .filter((name) => name.startsWith('@fontsource'))
    .map((name) => join(ROOT, 'node_modules', name)),
);

rmSync(OUT, { recursive: true, force: true });
await buildNode();
await buildBrowser();
checkBrowser();
buildTypes();
await buildPage();
copyData();
writeEspeak(join(OUT, ESPEAK), root.version);
writeFileSync(join(PARLEY, 'package.json'), `${JSON.stringify(parleyManifest(), null, 2)}\n`);
writeFileSync(join(MODELS, 'package.json'), `${JSON.stringify(modelsManifest(), null, 2)}\n`);

/** Builds the server, the engine's processes and threads, and the library as entries side by side, with shared code in chunks. */
async function buildNode(): Promise<void> {
  const input = {
    parley: join(ROOT, 'server', 'parley.mjs'),
    index: join(LIBRARY, 'node.ts'),
    server: join(LIBRARY, 'server.ts'),
    'ai-sdk': join(LIBRARY, 'ai-sdk.ts'),
    [entryName(NODE_PLATFORM)]: NODE_PLATFORM,
    ...threadEntries(['engine', 'sources', 'server']),
  };
  await build({
    configFile: false,
    root: ROOT,
    logLevel: 'warn',
    publicDir: false,
    plugins: [packageLayout()],
    build: {
      ssr: true,
      ssrEmitAssets: true,
      outDir: NODE,
      target: 'node20',
      minify: false,
      rollupOptions: {
        input,
        preserveEntrySignatures: 'allow-extension',
        output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js', assetFileNames: '[name][extname]' },
      },
    },
  });
}

/** Builds the browser's library and its workers, with the code of other packages that they need. */
async function buildBrowser(): Promise<void> {
  const input = { index: join(LIBRARY, 'browser.ts'), worker: join(LIBRARY, 'worker.ts'), ...threadEntries(['web/src/worker']) };
  await build({
    configFile: false,
    root: ROOT,
    logLevel: 'error',
    publicDir: false,
    base: './',
    plugins: [
      espeakBeside(root.version),
      collectPackages(compiled),
      noNode(),
      pageLayout(),
      sharedShaders({ isInline: true }),
      grammarWasm({ isInline: true }),
    ],
    ssr: { target: 'webworker', noExternal: true, external: [ESPEAK] },
    build: {
      ssr: true,
      ssrEmitAssets: true,
      outDir: BROWSER,
      target: 'es2023',
      minify: true,
      rollupOptions: {
        input,
        preserveEntrySignatures: 'allow-extension',
        output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js', assetFileNames: '[name]-[hash][extname]' },
      },
    },
  });
}

/** Checks that the browser's modules import no module of Node and no package by name, except espeak-ng, which bundlers resolve. */
function checkBrowser(): void {
  for (const name of readdirSync(BROWSER).filter((file) => file.endsWith('.js'))) {
    const code = readFileSync(join(BROWSER, name), 'utf8');
    for (const [, source] of code.matchAll(/\b(?:from|import)\s*\(?\s*["'`]([^"'`]+)["'`]/g))
      if (!source!.startsWith('.') && source !== ESPEAK && /^(node:|@?[a-z][\w./-]*$)/.test(source!))
        throw new Error(`dist/browser/${name} imports ${source}, which a page does not find`);
  }
}

/** Builds the public type declarations, which depend on no others. */
function buildTypes(): void {
  const all = join(OUT, 'types');
  const tsc = spawnSync(
    process.execPath,
    [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', join(LIBRARY, 'build', 'tsconfig.json'), '--outDir', all],
    {
      stdio: 'inherit',
    },
  );
  if (tsc.status !== 0) throw new Error('the types could not be written (above)');
  const needed = ['node', 'server', 'worker', 'ai-sdk'];
  mkdirSync(TYPES, { recursive: true });
  for (const name of needed) {
    const code = readFileSync(join(all, 'library', `${name}.d.ts`), 'utf8').replace(/^import '\.\.\/.*\n/gm, '');
    const relative = [...code.matchAll(/from '(\.[^']+)'/g)].map(([, path]) => path!);
    for (const path of relative) {
      const next = /^\.\/([\w-]+)\.ts$/.exec(path)?.[1];
      if (next === undefined) throw new Error(`${name}.d.ts shows ${path}, which is not public: see library/types.ts`);
      if (!needed.includes(next)) needed.push(next);
    }
    writeFileSync(join(TYPES, `${name}.d.ts`), code.replace(/(from '\.[^']+)\.ts'/g, "$1.js'"));
  }
  rmSync(all, { recursive: true });
}

/** Builds the playground as the server serves it, without models and espeak-ng, which come from packages of their own. */
async function buildPage(): Promise<void> {
  const espeak = espeakAt("new URL(/* @vite-ignore */ '../espeak/index.js', import.meta.url).href");
  await build({
    configFile: join(ROOT, 'web', 'vite.config.ts'),
    logLevel: 'warn',
    plugins: [espeak, collectPackages(compiled)],
    worker: { plugins: () => [espeak, collectPackages(compiled)] },
    build: { outDir: PAGE },
  });
  const built = join(PAGE, 'models');
  mkdirSync(join(MODELS, 'models'), { recursive: true });
  for (const { id } of (JSON.parse(readFileSync(join(built, 'index.json'), 'utf8')) as { models: { id: string }[] }).models)
    cpSync(join(ROOT, 'models', id), join(MODELS, 'models', id), { recursive: true });
  renameSync(join(built, 'index.json'), join(MODELS, 'models', 'index.json'));
  rmSync(built, { recursive: true });
  // Every browser with WebGPU reads the smaller files.
  for (const name of readdirSync(PAGE, { recursive: true }).map(String)) if (name.endsWith('.gz')) rmSync(join(PAGE, name));
  mkdirSync(join(PAGE, 'no-models'));
  writeFileSync(join(PAGE, 'no-models', 'index.json'), '{"models":[]}');
}

/** Copies the files that the code reads at run time, and those for people. */
function copyData(): void {
  for (const name of ['recipes', 'silero-vad']) cpSync(join(ROOT, 'models', name), join(PARLEY, 'models', name), { recursive: true });
  for (const folder of [PARLEY, MODELS]) copyFileSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  // Its links lead to files that the package does not have.
  const guide = readFileSync(join(ROOT, 'docs', 'library.md'), 'utf8').replace(/\[([^\]]*)\]\((?!https?:)[^)]*\)/g, '$1');
  writeFileSync(join(PARLEY, 'README.md'), guide);
  copyFileSync(join(ROOT, 'CHANGELOG.md'), join(PARLEY, 'CHANGELOG.md'));
  copyFileSync(join(ROOT, 'server', 'audio', 'codecs', 'README.md'), join(NODE, 'codecs.md'));
  writeFileSync(join(PARLEY, 'THIRD-PARTY.md'), describeLicences(compiled));
  writeFileSync(join(MODELS, 'README.md'), MODELS_README);
}

/** Packages that the code for Node imports. The others were bundled, or are needed only for the build. */
function importedPackages(): Set<string> {
  const found = new Set<string>();
  for (const name of readdirSync(NODE).filter((file) => file.endsWith('.js'))) {
    const code = readFileSync(join(NODE, name), 'utf8');
    for (const [, source] of code.matchAll(/(?:\bfrom|\bimport|\bimport\(|resolveModule\(|\.resolve\()\s*["']([@a-z][^"'\n]*)["']/g)) {
      const parts = source!.split('/');
      found.add(source!.startsWith('@') ? parts.slice(0, 2).join('/') : parts[0]!);
    }
  }
  return found;
}

function parleyManifest(): object {
  const imported = importedPackages();
  const dependencies = Object.fromEntries(
    Object.entries(root.dependencies).filter(([name]) => imported.has(name) && !BUILD_ONLY.includes(name)),
  );
  const unknown = [...imported].filter(
    (name) => !(name in root.dependencies) && !name.startsWith('node:') && !builtinModules.includes(name) && !ABSENT.includes(name),
  );
  if (unknown.length > 0) throw new Error(`the package imports what is no dependency: ${unknown.join(', ')}`);
  const { version, description, license, engines } = root;
  return {
    name: 'parley',
    version,
    description,
    license,
    type: 'module',
    bin: { parley: 'dist/node/parley.js' },
    main: './dist/node/index.js',
    types: './dist/types/node.d.ts',
    exports: {
      '.': {
        types: './dist/types/node.d.ts',
        browser: './dist/browser/index.js',
        default: './dist/node/index.js',
      },
      './server': { types: './dist/types/server.d.ts', default: './dist/node/server.js' },
      './worker': { types: './dist/types/worker.d.ts', default: './dist/browser/worker.js' },
      './ai-sdk': { types: './dist/types/ai-sdk.d.ts', default: './dist/node/ai-sdk.js' },
      './package.json': './package.json',
    },
    engines,
    // Worker modules consist of side effects only.
    sideEffects: ['./dist/browser/worker.js', './dist/browser/*-worker.js', './dist/node/*.js'],
    dependencies,
    optionalDependencies: { 'parley-models': version, [ESPEAK]: version },
    peerDependencies: { '@ai-sdk/provider': '^4.0.0' },
    peerDependenciesMeta: { '@ai-sdk/provider': { optional: true } },
  };
}

function modelsManifest(): object {
  const { version, license } = root;
  return {
    name: 'parley-models',
    version,
    description: 'The three small models that the package parley starts with',
    license,
    exports: { './package.json': './package.json', './*': './*' },
  };
}

if (!existsSync(join(NODE, 'parley.js'))) throw new Error('the build wrote no parley.js');
console.log(
  `${OUT}: ${readdirSync(OUT)
    .map((name) => `${name} ${(bytesBelow(join(OUT, name)) / 1e6).toFixed(1)} MB`)
    .join(', ')}`,
);

function bytesBelow(folder: string): number {
  return readdirSync(folder, { recursive: true }).reduce((sum, name) => sum + statSync(join(folder, String(name))).size, 0);
}
