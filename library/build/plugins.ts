/** Plugins of the build of the package: what the sources find beside themselves, found in the package's own layout. */
import { readFileSync, readdirSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';
import { readShaderFiles } from '../../web/shared-shaders.ts';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HERE = join(ROOT, 'library', 'build');

/** A module named by its address, beside the module that names it: a process or a thread of its own. */
const MODULE_URL = /new URL\(\s*(?:\/\*[^*]*\*\/\s*)?'(\.{1,2}\/[^']+\.(?:ts|mjs))',\s*import\.meta\.url\)/g;
const WASM_URL = /new URL\('(\.\/[^']+\.wasm)', import\.meta\.url\)/g;

/** What a module of the sources is called in `dist/node/`, where all lie side by side. */
export const entryName = (path: string): string =>
  relative(ROOT, path)
    .replace(/\.(ts|mjs)$/, '')
    .split(sep)
    .join('-');

/** What a thread makes its platform with. */
export const NODE_PLATFORM = join(ROOT, 'engine', 'platform', 'node.ts');

/** Modules of these folders that run in a process or a thread of their own, by their names in the package. */
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

/** Node's own modules in a page: packages ask for them where they find themselves in Node, and nowhere else. */
export function noNode(): Plugin {
  return {
    name: 'parley-no-node',
    enforce: 'pre',
    resolveId: (source) => (isBuiltin(source) ? '\0no-node' : undefined),
    load: (id) => (id === '\0no-node' ? 'export default undefined;' : undefined),
  };
}

/** Addresses in a page's modules: its workers lie beside them, and threads that only Node has lie nowhere. */
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

/** Addresses of modules and WebAssembly as the package has them, its own layout, and the shaders inlined. */
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

/** Threads import the platform by its entry: what it is made of lies in modules whose exports have other names. */
function withEntry(code: string): string {
  const own = 'platform: import.meta.url';
  if (!code.includes(own)) throw new Error('engine/platform/node.ts no longer names itself to threads as library/build/plugins.ts expects');
  return code.replace(own, `platform: new URL('./${entryName(NODE_PLATFORM)}.js', import.meta.url).href`);
}

/** Tells bundlers that an address is none of theirs. */
const IGNORE = '/* webpackIgnore: true */ /* @vite-ignore */ ';

/**
 * The phonemizer by its name, which bundlers resolve, else beside this package as static servers and CDNs of npm have it. The espeak-ng in it has another
 * licence, so it stays a package of its own.
 */
export function phonemizerBeside(version: string): Plugin {
  const at = (folder: string): string => `'../../../${folder}/dist/phonemizer.js'`;
  // The module's own address stands in a name: Rspack leaves `import.meta` as it is in what it is told to ignore.
  const address = `new URL(here.includes('/parley@') ? ${at(`phonemizer@${version}`)} : ${at('phonemizer')}, here).href`;
  const beside = `import(${address})`;
  return {
    name: 'parley-phonemizer-beside',
    enforce: 'pre',
    resolveId: (source, importer) =>
      source !== 'phonemizer' ? undefined : importer === '\0phonemizer' ? { id: source, external: true } : '\0phonemizer',
    load: (id) =>
      id === '\0phonemizer'
        ? `const here = import.meta.url;\nconst loaded = () => import('phonemizer').catch(() => ${beside});\nexport const phonemize = async (...args) => (await loaded()).phonemize(...args);`
        : undefined,
    // Only now, as minifying drops comments: bundlers warn of an address that they cannot know.
    generateBundle(_, bundle) {
      for (const chunk of Object.values(bundle))
        if (chunk.type === 'chunk') chunk.code = chunk.code.replace(/import\((?=new URL\([\w$]+\.includes\()/g, `import(${IGNORE}`);
    },
  };
}

/** The phonemizer as an address: `address` is an expression. The espeak-ng in it has another licence, so it stays a package of its own. */
export function phonemizerAt(address: string): Plugin {
  return {
    name: 'parley-phonemizer',
    enforce: 'pre',
    resolveId: (source) => (source === 'phonemizer' ? '\0phonemizer' : undefined),
    load: (id) =>
      id === '\0phonemizer'
        ? `export const phonemize = async (...args) => (await import(/* @vite-ignore */ ${address})).phonemize(...args);`
        : undefined,
  };
}
