#!/usr/bin/env node
/** `npx parley`: its commands, as HELP has them; `serve`, or no command, starts the server, as `npm start` does. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { outliveReaders } from './closed-pipe.mjs';
import { IS_REPOSITORY, ROOT } from './setup/layout.mjs';
import { installPackages, requireNode, requireOpenFiles, requireTemporaryFolder, withSetup } from './setup/setup.mjs';
import { unpackedDriver } from './setup/drivers.mjs';

/** Commands that run in this process. */
const COMMANDS = {
  adapters: async () => (await import('./setup/adapters.ts')).runAdapters,
  pull: async () => (await import('./commands/models.ts')).runPull,
  models: async () => (await import('./commands/models.ts')).runModels,
  rm: async () => (await import('./commands/models.ts')).runRemove,
  run: async () => (await import('./commands/run.ts')).runPrompt,
  bench: async () => (await import('./commands/bench.ts')).runBench,
  doctor: async () => (await import('./commands/doctor.ts')).runDoctor,
};

const HELP = `Usage: parley [COMMAND]

  serve                starts the server, as 'npm start' does; so do settings without a command
  pull SOURCE...       fetches models, or what is new of them
  models               lists the bundled and the cached models; with --recommended those for real work
  rm SOURCE...         removes models from the caches
  run MODEL "prompt"   one answer, or a conversation, without a server
  bench [MODEL]        how fast a model is here, and which kernels take the time
  adapters             lists the GPUs, how fast they are, and which settings use them
  doctor               says what of this machine would stop or slow the server, and what mends it

'parley COMMAND --help' says more; 'parley --version' says which version this is.`;

outliveReaders();
const [name, ...rest] = process.argv.slice(2);
if (Object.hasOwn(COMMANDS, name ?? '')) {
  await withSetup(async () => {
    requireNode();
    requireTemporaryFolder();
    requireOpenFiles();
    installPackages({ dev: false });
    // The probes of `adapters` are processes of their own. A driver that the user names is the one to report on.
    if (process.env.VK_DRIVER_FILES === undefined) Object.assign(process.env, unpackedDriver());
    if (IS_REPOSITORY) (await import('tsx/esm/api')).register();
    const run = await COMMANDS[name]();
    await run(rest);
  });
} else if (name === 'help' || (['--help', '-h'].includes(name ?? '') && rest.length === 0)) {
  process.stdout.write(`${HELP}\n`);
} else if (['--version', '-v'].includes(name ?? '') && rest.length === 0) {
  process.stdout.write(`${JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version}\n`);
} else if (name !== undefined && !name.startsWith('-') && name !== 'start' && name !== 'serve') {
  process.stderr.write(`there is no command '${name}'; there are serve, ${Object.keys(COMMANDS).join(', ')}\n`);
  process.exitCode = 2;
} else {
  if (name === 'start' || name === 'serve') process.argv.splice(2, 1);
  await import('./setup/start.mjs');
}
