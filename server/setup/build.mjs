/** `npm run build`: builds the playground, whether or not that is needed; what is missing for it is installed first. */
import { build, installPackages, requireNode, withSetup } from './setup.mjs';

await withSetup(() => {
  requireNode();
  installPackages({ dev: false });
  if (!build({ always: true })) process.exitCode = 1;
});
