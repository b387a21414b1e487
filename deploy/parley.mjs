#!/usr/bin/env node
/**
 * Entry of the image and of the systemd unit: runs the server in this very process, and installs, builds or unpacks nothing first. With a command (`doctor`,
 * `adapters`, `pull` ...) it is `npx parley`. This file alone says how the server is started where everything is in place.
 */
import { requireTemporaryFolder, withSetup } from '../server/setup/setup.mjs';

// A container's first process receives only signals that it handles, and the server handles them only once its models are there.
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    if (process.listenerCount(signal) === 1) process.exit(143);
  });

const [command] = process.argv.slice(2);
if (command === undefined || (command.startsWith('-') && command !== '--version') || command === 'serve') {
  if (command === 'serve') process.argv.splice(2, 1);
  await withSetup(requireTemporaryFolder);
  // Only now, because it asks for the current folder.
  (await import('tsx/esm/api')).register();
  await import('../server/main.ts');
} else {
  await import('../server/parley.mjs');
}
