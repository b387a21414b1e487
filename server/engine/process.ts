/** Entry of the engine process, which is separate so that a driver's crash or a hung GPU leaves the listeners answering. */
import { createEngine, resolveConfig } from '../../engine/index.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { Platform } from '../../engine/platform/platform.ts';
import { runEngineProcess } from './port.ts';
import { yieldProcess } from './yielding.ts';

/** Lowers the process's priority once a software adapter is opened, since that takes every core while it computes. */
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
