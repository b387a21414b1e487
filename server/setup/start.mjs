/** `npm start`: sets up what is missing, then runs the server. Arguments and signals go to the server; see `npm start -- --help`. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { ROOT, buildPlayground, installPackages, requireNode, withSetup } from './setup.mjs';
import { ensureAdapter } from './drivers.mjs';

await withSetup(() => {
  requireNode();
  installPackages({ dev: false });
  const argv = process.argv.slice(2);
  if (!argv.includes('--help')) {
    // The loader of libraries reads its variable when a process starts, so they are for the server, not for this one.
    Object.assign(process.env, ensureAdapter().environment);
    buildPlayground();
  }
  run(argv);
});

function run(argv) {
  const server = spawn(process.execPath, ['--import', 'tsx', 'server/main.ts', ...argv], { cwd: ROOT, stdio: 'inherit' });
  // Ctrl-C in a terminal reaches the server directly as well; it takes two within half a second for one.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => server.kill(signal));
  server.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}
