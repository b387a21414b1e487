/** The package's THIRD-PARTY.md: the licence of every package that is compiled into it. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';

/** A plugin that adds the folders of the packages from which modules are bundled to `folders`. */
export function collectPackages(folders: Set<string>): Plugin {
  return {
    name: 'parley-collect-packages',
    moduleParsed({ id }) {
      const [, folder] = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/.exec(id.replace(/^\0/, '')) ?? [];
      if (folder !== undefined) folders.add(folder);
    },
  };
}

/** Returns all licences as one text; throws if a package has none. */
export function describeLicences(folders: Iterable<string>): string {
  const parts = [...folders].sort().flatMap((folder) => {
    if (!existsSync(join(folder, 'package.json'))) return [];
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, string>;
    if (license === undefined || /GPL/.test(license)) throw new Error(`${name} is compiled in, under ${license}`);
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? '' : `\n\n${readFileSync(join(folder, file), 'utf8').trim()}`;
    return [`## ${name} ${version}: ${license}${text}`];
  });
  return `# What is compiled into this package\n\n${parts.join('\n\n')}\n`;
}
