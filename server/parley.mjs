#!/usr/bin/env node
/** `npx parley`: `adapters` lists the GPUs; anything else starts the server, as `npm start` does. */
import { installPackages, requireNode, withSetup } from './setup.mjs';

if (process.argv[2] === 'adapters') {
  await withSetup(async () => {
    requireNode();
    installPackages({ dev: false });
    const { register } = await import('tsx/esm/api');
    register();
    const { runAdapters } = await import('./adapters.ts');
    await runAdapters(process.argv.slice(3));
  });
} else {
  if (process.argv[2] === 'start') process.argv.splice(2, 1);
  await import('./start.mjs');
}
