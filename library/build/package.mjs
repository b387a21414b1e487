/** `npm run package`: installs what is missing, then builds (build.ts). Plain Node, because nothing is installed in a fresh checkout. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ROOT } from '../../server/setup/layout.mjs';
import { installPackages, requireNode, withSetup } from '../../server/setup/setup.mjs';

await withSetup(() => {
  requireNode();
  // `npm start` installs too little: the compiler that writes the types is a development dependency.
  installPackages({ dev: true });
  const build = fileURLToPath(new URL('build.ts', import.meta.url));
  const { status } = spawnSync(process.execPath, ['--import', import.meta.resolve('tsx'), build], { cwd: ROOT, stdio: 'inherit' });
  process.exitCode = status ?? 1;
});
