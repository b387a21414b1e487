#!/usr/bin/env node
/** `npx parley`: `adapters` lists the GPUs, `pull`, `models` and `rm` are about models; `serve`, or no command, starts the server, as `npm start` does. */
import { installPackages, requireNode, withSetup } from './setup/setup.mjs';
import { unpackedDriver } from './setup/drivers.mjs';

/** Commands that run in this process: the module that has each, and its function. */
const COMMANDS = {
  adapters: ['./setup/adapters.ts', 'runAdapters'],
  pull: ['./commands/models.ts', 'runPull'],
  models: ['./commands/models.ts', 'runModels'],
  rm: ['./commands/models.ts', 'runRemove'],
};

const [name, ...rest] = process.argv.slice(2);
if (Object.hasOwn(COMMANDS, name ?? '')) {
  await withSetup(async () => {
    requireNode();
    installPackages({ dev: false });
    // The probes of `adapters` are processes of their own. A driver that the user names is the one to report on.
    if (process.env.VK_DRIVER_FILES === undefined) Object.assign(process.env, unpackedDriver());
    const { register } = await import('tsx/esm/api');
    register();
    const [module, run] = COMMANDS[name];
    await (await import(module))[run](rest);
  });
} else {
  if (name === 'start' || name === 'serve') process.argv.splice(2, 1);
  await import('./setup/start.mjs');
}
