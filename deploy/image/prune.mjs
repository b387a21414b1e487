/** Step of the image's build: removes Dawn's builds for other systems from node_modules, which are most of it. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const folder = join('node_modules', 'webgpu', 'dist');
const kept = `${process.platform}-${process.arch}`;
const builds = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
if (!builds.some(({ name }) => name === kept))
  throw new Error(`${folder} has ${builds.map(({ name }) => name).join(', ')}, and no ${kept}`);
for (const { name } of builds) if (name !== kept) rmSync(join(folder, name), { recursive: true });
