/** `npm start`: sets up what is missing, then runs the server. Arguments and signals go to the server; see `npm start -- --help`. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { IS_REPOSITORY } from './layout.mjs';
import { buildPlayground, installPackages, requireNode, requireOpenFiles, requireTemporaryFolder, withSetup } from './setup.mjs';
import { ensureAdapter } from './drivers.mjs';

await withSetup(() => {
  requireNode();
  requireTemporaryFolder();
  requireOpenFiles();
  installPackages({ dev: false });
  const argv = process.argv.slice(2);
  if (!argv.includes('--help')) {
    // The dynamic linker reads LD_LIBRARY_PATH when a process starts, so these variables are for the server's process.
    Object.assign(process.env, ensureAdapter().environment);
    buildPlayground();
  }
  run(argv);
});

function run(argv) {
  const main = fileURLToPath(new URL('../main.ts', import.meta.url));
  // As a URL, because a bare name would be resolved from the working directory, where tsx need not be installed.
  const loader = IS_REPOSITORY ? ['--import', import.meta.resolve('tsx')] : [];
  // The IPC channel closes with this process, so the server notices if this process was killed and can no longer pass signals on.
  const options = { stdio: ['inherit', 'inherit', 'inherit', 'ipc'], env: { ...process.env, PARLEY_STARTED: '1' } };
  const server = spawn(process.execPath, [...loader, main, ...argv], options);
  // Ctrl-C in a terminal also reaches the server directly; it takes two within half a second for one.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => server.kill(signal));
  server.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}
