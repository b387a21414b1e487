/** The package `parley-espeak`: espeak-ng for pages, with the data of the languages that are spoken. It is GPL, so it stays a package of its own. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ESPEAK_SCRIPT, espeakParts, placesIn } from '../../web/espeak.ts';

const README = (version: string): string => `# parley-espeak

espeak-ng for pages that speak with the package \`parley\`: the script of @echogarden/espeak-ng-emscripten ${version}, and those parts of its data that tell how the
languages are pronounced, unchanged. Of the script is taken out what bundlers for pages do not find: a module of Node, and the address of a file that does not exist.
The source is at https://github.com/echogarden-project/espeak-ng (branch \`fork\`).

It is under the GNU General Public License, version 3 or later (COPYING).
`;

/** What the script names and bundlers do not find, though no page comes to it; and what stands in its place. */
const ABSENT = [
  ['await import("module")', '{}'],
  ['new URL("espeak-ng.wasm",import.meta.url).href', '""'],
] as const;

function forPages(script: string): string {
  const changed = ABSENT.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`espeak-ng.js no longer has ${from}, which library/build/espeak.ts takes out`);
    return text.replace(from, to);
  }, script);
  return `// Changed for the package parley-espeak, whose README.md says how.\n${changed}`;
}

/** Writes the package. Its data is in modules, which every bundler and every server of files delivers. */
export function writeEspeak(folder: string, version: string): void {
  mkdirSync(folder, { recursive: true });
  const source = dirname(ESPEAK_SCRIPT);
  const published = (JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as { version: string }).version;
  copyFileSync(join(source, 'COPYING'), join(folder, 'COPYING'));
  writeFileSync(join(folder, 'espeak-ng.js'), forPages(readFileSync(ESPEAK_SCRIPT, 'utf8')));
  const parts = espeakParts();
  for (const { name, bytes } of parts) writeFileSync(join(folder, `${name}.js`), `export default '${bytes.toString('base64')}';\n`);
  writeFileSync(
    join(folder, 'index.js'),
    `export { default as make } from './espeak-ng.js';
const parts = [${parts.map(({ name }) => `() => import('./${name}.js')`).join(', ')}];
const places = ${placesIn(parts)};
export async function file(name) {
  const [i, start, end] = places[name];
  const { default: text } = await parts[i]();
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).subarray(start, end);
}
`,
  );
  writeFileSync(join(folder, 'README.md'), README(published));
  const manifest = {
    name: 'parley-espeak',
    version,
    description: 'espeak-ng for pages that speak with the package parley',
    license: 'GPL-3.0-or-later',
    type: 'module',
    exports: { '.': './index.js', './package.json': './package.json' },
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}
