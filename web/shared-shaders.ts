/** A plugin of the build: the shaders as one file beside the scripts. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';

const FOLDER = fileURLToPath(new URL('../shaders', import.meta.url));

/** Of a mode that the playground does not offer: no browser has subgroup matrices without a flag. */
const NOT_IN_PAGES = ['linear/half_rows.wgsl', 'linear/linear_matrix.wgsl'];

/** Every .wgsl file by its path below shaders/, without comments and indentation, which are two fifths of their weight. */
export function readShaderFiles(): (readonly [name: string, text: string])[] {
  const names = readdirSync(FOLDER, { recursive: true }).map(String).filter((name) => name.endsWith('.wgsl')).sort(); // prettier-ignore
  return names.map((name) => [name.replaceAll('\\', '/'), bare(readFileSync(join(FOLDER, name), 'utf8'))]);
}

const bare = (text: string): string => text.replace(/\/\/[^\n]*/g, '').split('\n').map((line) => line.trim()).filter((line) => line !== '').join('\n'); // prettier-ignore

/**
 * The module `virtual:shaders`: every .wgsl file by its path below shaders/. Built, they are one file that the engine and the self-test both
 * fetch; `isInline` leaves them in the script.
 */
export function sharedShaders({ isInline = false } = {}): Plugin {
  let isFile = false;
  return {
    name: 'shared-shaders',
    configResolved({ command }) {
      isFile = command === 'build' && !isInline;
    },
    resolveId: (source) => (source === 'virtual:shaders' ? '\0shaders' : undefined),
    load(id) {
      if (id !== '\0shaders') return undefined;
      const files = readShaderFiles().filter(([name]) => isInline || !NOT_IN_PAGES.includes(name));
      for (const [name] of files) this.addWatchFile(join(FOLDER, name));
      const source = JSON.stringify(Object.fromEntries(files));
      if (!isFile) return `export const readShaders = async () => (${source});`;
      const file = this.emitFile({ type: 'asset', name: 'shaders.json', source });
      return `export const readShaders = async () => (await fetch(import.meta.ROLLUP_FILE_URL_${file})).json();`;
    },
  };
}
