/** Entry of the engine's process. A crash of a driver or a hung GPU ends here and leaves the listeners answering. */
import { createEngine, resolveConfig } from '../../engine/index.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { Platform } from '../../engine/platform/platform.ts';
import { runEngineProcess } from './port.ts';
import { yieldProcess } from './yielding.ts';

/** A software adapter takes every core for as long as it computes. */
function yieldingOnSoftware(platform: Platform): Platform {
  let yields = false;
  const deviceCreated = (software: boolean): void => {
    platform.deviceCreated(software);
    if (software && !yields) yieldProcess();
    yields ||= software;
  };
  return { ...platform, deviceCreated };
}

runEngineProcess(({ config, toggles, cache }, log, planned) =>
  createEngine(yieldingOnSoftware(createNodePlatform({ toggles, log, cache })), resolveConfig(config), planned),
);
