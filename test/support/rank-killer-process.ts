/** Entry of an engine process whose ranks can be killed: SIGUSR2 ends the thread of one of them, in turn. */
import { createEngine, resolveConfig } from '../../engine/index.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { PlatformWorker } from '../../engine/platform/platform.ts';
import { runEngineProcess } from '../../server/engine/port.ts';

runEngineProcess(({ config, toggles }, log) => {
  const platform = createNodePlatform({ toggles, log });
  const workers: PlatformWorker[] = [];
  process.on('SIGUSR2', () => void workers[process.pid % workers.length]?.terminate());
  const startWorker = (url: URL): PlatformWorker => {
    const worker = platform.startWorker!(url);
    workers.push(worker);
    return worker;
  };
  return createEngine({ ...platform, startWorker }, resolveConfig(config));
});
