/** Vite plugins that build the package: they adapt the paths by which sources find other files to the package's layout. */
import { readFileSync, readdirSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';
import { readShaderFiles } from '../../web/shared-shaders.ts';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HERE = join(ROOT, 'library', 'build');

/** A `new URL(...)` of another module, which runs in a process or a thread of its own. */
const MODULE_URL = /new URL\(\s*(?:\/\*[^*]*\*\/\s*)?'(\.{1,2}\/[^']+\.(?:ts|mjs))',\s*import\.meta\.url\)/g;
const WASM_URL = /new URL\('(\.\/[^']+\.wasm)', import\.meta\.url\)/g;

/** Name of a source module in `dist/node/`, where all modules are side by side. */
export const entryName = (path: string): string =>
  relative(ROOT, path)
    .replace(/\.(ts|mjs)$/, '')
    .split(sep)
    .join('-');

/** Module from which a thread creates its platform. */
export const NODE_PLATFORM = join(ROOT, 'engine', 'platform', 'node.ts');

/** Modules that the files of these folders start in a process or a thread of their own, by their names in the package. */
export function threadEntries(folders: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const folder of folders) {
    for (const name of readdirSync(join(ROOT, folder), { recursive: true }).map(String)) {
      if (!/\.(ts|mjs)$/.test(name) || /(^|[\\/])deno/.test(name)) continue;
      const file = join(ROOT, folder, name);
      for (const [, target] of readFileSync(file, 'utf8').matchAll(MODULE_URL)) {
        const path = join(dirname(file), target!);
        found[entryName(path)] = path;
      }
    }
  }
  return found;
}

/** Replaces Node's own modules in a page. Packages import them only where they detect Node. */
export function noNode(): Plugin {
  return {
    name: 'parley-no-node',
    enforce: 'pre',
    resolveId: (source) => (isBuiltin(source) ? '\0no-node' : undefined),
    load: (id) => (id === '\0no-node' ? 'export default undefined;' : undefined),
  };
}

/** Rewrites URLs in a page's modules: its workers are next to them, and threads that only Node has are nowhere. */
export function pageLayout(): Plugin {
  return {
    name: 'parley-page-layout',
    enforce: 'pre',
    transform(code, id) {
      if (!id.startsWith(ROOT) || id.includes('node_modules')) return undefined;
      const inPage = id.startsWith(join(ROOT, 'web'));
      const moved = code.replace(MODULE_URL, (_, path: string) =>
        inPage ? `new URL('./${entryName(join(dirname(id), path))}.js', import.meta.url)` : `new URL('about:blank')`,
      );
      return moved === code ? undefined : { code: moved, map: null };
    },
  };
}

/** Rewrites URLs of modules and WebAssembly for the package, replaces the layout by the package's own, and inlines the shaders. */
export function packageLayout(): Plugin {
  return {
    name: 'parley-package-layout',
    enforce: 'pre',
    async resolveId(source, importer) {
      if (!source.endsWith('/layout.mjs') || importer === undefined) return undefined;
      const resolved = await this.resolve(source, importer, { skipSelf: true });
      return resolved?.id === join(ROOT, 'server', 'setup', 'layout.mjs') ? join(HERE, 'layout.mjs') : resolved;
    },
    transform(code, id) {
      if (!id.startsWith(ROOT) || id.includes('node_modules')) return undefined;
      const wasm = [...code.matchAll(WASM_URL)].map(([, path]) => join(dirname(id), path!));
      for (const path of wasm) this.emitFile({ type: 'asset', fileName: basename(path), source: readFileSync(path) });
      const moved = code
        .replace(MODULE_URL, (_, path: string) => `new URL('./${entryName(join(dirname(id), path))}.js', import.meta.url)`)
        .replace(WASM_URL, (_, path: string) => `new URL('./${basename(path)}', import.meta.url)`);
      const inlined = id === NODE_PLATFORM ? withEntry(withShaders(moved)) : moved;
      return inlined === code ? undefined : { code: inlined, map: null };
    },
  };
}

const READ_SHADERS = /function readShaders\(\): ReadonlyMap<string, string> \{\n[\s\S]*?\n\}\n/;

function withShaders(code: string): string {
  if (!READ_SHADERS.test(code)) throw new Error('engine/platform/node.ts no longer reads its shaders where library/build/plugins.ts looks');
  const made = `function readShaders(): ReadonlyMap<string, string> {\n  return new Map(${JSON.stringify(readShaderFiles())});\n}\n`;
  return code.replace(READ_SHADERS, () => made);
}

/** Makes threads import the platform by its entry: its code is in shared chunks whose exports have other names. */
function withEntry(code: string): string {
  const own = 'platform: import.meta.url';
  if (!code.includes(own)) throw new Error('engine/platform/node.ts no longer names itself to threads as library/build/plugins.ts expects');
  return code.replace(own, `platform: new URL('./${entryName(NODE_PLATFORM)}.js', import.meta.url).href`);
}

/** The package of espeak-ng for pages (espeak.ts). */
export const ESPEAK = 'parley-espeak';

/** Tells bundlers to leave a URL alone. */
const IGNORE = '/* webpackIgnore: true */ /* @vite-ignore */ ';

/**
 * The module `virtual:espeak` for the library of a page: it imports `parley-espeak` by its name, which bundlers resolve, or else from next to this package, where
 * static servers and npm CDNs have it. espeak-ng has another licence, so it stays a package of its own.
 */
export function espeakBeside(version: string): Plugin {
  const at = (folder: string): string => `'../../../${folder}/index.js'`;
  // The module's own URL is in a variable: Rspack leaves `import.meta` unchanged in what it is told to ignore.
  const address = `new URL(here.includes('/parley@') ? ${at(`${ESPEAK}@${version}`)} : ${at(ESPEAK)}, here).href`;
  return {
    name: 'parley-espeak-beside',
    enforce: 'pre',
    resolveId: (source) => (source === ESPEAK ? { id: source, external: true } : source === 'virtual:espeak' ? '\0espeak' : undefined),
    load: (id) =>
      id === '\0espeak'
        ? `const here = import.meta.url;\nexport const espeak = () => import('${ESPEAK}').catch(() => import(${address}));`
        : undefined,
    // Only now, because minifying drops comments, and bundlers warn of a URL that they cannot resolve.
    generateBundle(_, bundle) {
      for (const chunk of Object.values(bundle))
        if (chunk.type === 'chunk') chunk.code = chunk.code.replace(/import\((?=new URL\([\w$]+\.includes\()/g, `import(${IGNORE}`);
    },
  };
}

/** The module `virtual:espeak` for the playground: it imports `parley-espeak` from a URL; `address` is an expression. */
export function espeakAt(address: string): Plugin {
  return {
    name: 'parley-espeak',
    enforce: 'pre',
    resolveId: (source) => (source === 'virtual:espeak' ? '\0espeak' : undefined),
    load: (id) => (id === '\0espeak' ? `export const espeak = () => import(/* @vite-ignore */ ${address});` : undefined),
  };
}
