/** Entry of the engine's process. A crash of a driver or a hung GPU ends here and leaves the listeners answering. */
import { createEngine, resolveConfig } from '../../engine/index.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { runEngineProcess } from './port.ts';

runEngineProcess(({ config, toggles }, log, planned) => createEngine(createNodePlatform({ toggles, log }), resolveConfig(config), planned));
