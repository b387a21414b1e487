/** `npm run package`: writes what is published into dist/package/: `parley`, and `parley-models` with the bundled models. */
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
import { builtinModules } from 'node:module';
import { join, resolve } from 'node:path';
import { build } from 'vite';
import { NODE_PLATFORM, ROOT, entryName, packageLayout, phonemizerAt, threadEntries } from './plugins.ts';

const OUT = resolve(process.env['PARLEY_PACKAGE_FOLDER'] ?? join(ROOT, 'dist', 'package'));
const PARLEY = join(OUT, 'parley');
const MODELS = join(OUT, 'parley-models');
const NODE = join(PARLEY, 'dist', 'node');
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

/** tsx runs sources, which a package has none of. */
const BUILD_ONLY: readonly string[] = ['tsx', 'vite'];

/** Looked for, and done without. */
const ABSENT: readonly string[] = ['parley-models'];

rmSync(OUT, { recursive: true, force: true });
await buildNode();
await buildPage();
copyData();
writeFileSync(join(PARLEY, 'package.json'), `${JSON.stringify(parleyManifest(), null, 2)}\n`);
writeFileSync(join(MODELS, 'package.json'), `${JSON.stringify(modelsManifest(), null, 2)}\n`);

/** The server, the engine's processes and threads, and the library: modules side by side, with what they share in others. */
async function buildNode(): Promise<void> {
  const input = {
    parley: join(ROOT, 'server', 'parley.mjs'),
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

/** The playground as the server serves it; models and the phonemizer lie beside it, in packages of their own. */
async function buildPage(): Promise<void> {
  const phonemizer = phonemizerAt("new URL(/* @vite-ignore */ '../phonemizer/phonemizer.js', import.meta.url).href");
  await build({
    configFile: join(ROOT, 'web', 'vite.config.ts'),
    logLevel: 'warn',
    plugins: [phonemizer],
    worker: { plugins: () => [phonemizer] },
    build: { outDir: PAGE },
  });
  const built = join(PAGE, 'models');
  mkdirSync(join(MODELS, 'models'), { recursive: true });
  for (const { id } of (JSON.parse(readFileSync(join(built, 'index.json'), 'utf8')) as { models: { id: string }[] }).models)
    cpSync(join(ROOT, 'models', id), join(MODELS, 'models', id), { recursive: true });
  renameSync(join(built, 'index.json'), join(MODELS, 'models', 'index.json'));
  rmSync(built, { recursive: true });
  // Every browser that has WebGPU reads the smaller ones.
  for (const name of readdirSync(PAGE, { recursive: true }).map(String)) if (name.endsWith('.gz')) rmSync(join(PAGE, name));
  mkdirSync(join(PAGE, 'no-models'));
  writeFileSync(join(PAGE, 'no-models', 'index.json'), '{"models":[]}');
}

/** What code reads beside itself, and what people do. */
function copyData(): void {
  for (const name of ['recipes', 'silero-vad']) cpSync(join(ROOT, 'models', name), join(PARLEY, 'models', name), { recursive: true });
  for (const folder of [PARLEY, MODELS]) copyFileSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  copyFileSync(join(ROOT, 'library', 'README.md'), join(PARLEY, 'README.md'));
  copyFileSync(join(ROOT, 'CHANGELOG.md'), join(PARLEY, 'CHANGELOG.md'));
  writeFileSync(join(MODELS, 'README.md'), MODELS_README);
}

/** Packages that the code for Node imports; what is not among them was bundled, or is for the build. */
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
    exports: { './package.json': './package.json' },
    engines,
    sideEffects: false,
    dependencies,
    optionalDependencies: { 'parley-models': version },
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
