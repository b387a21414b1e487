#!/usr/bin/env node
/** `npx parley`: `adapters` lists the GPUs; anything else starts the server, as `npm start` does. */
import { installPackages, requireNode, withSetup } from './setup/setup.mjs';
import { unpackedDriver } from './setup/drivers.mjs';

if (process.argv[2] === 'adapters') {
  await withSetup(async () => {
    requireNode();
    installPackages({ dev: false });
    // The probes are processes of their own. A driver that the user names is the one to report on.
    if (process.env.VK_DRIVER_FILES === undefined) Object.assign(process.env, unpackedDriver());
    const { register } = await import('tsx/esm/api');
    register();
    const { runAdapters } = await import('./setup/adapters.ts');
    await runAdapters(process.argv.slice(3));
  });
} else {
  if (process.argv[2] === 'start') process.argv.splice(2, 1);
  await import('./setup/start.mjs');
}
