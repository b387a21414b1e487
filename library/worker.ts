/** `parley/worker`: the engine worker's script, for bundlers that build it themselves. */
import '../web/src/worker/engine-worker.ts';
