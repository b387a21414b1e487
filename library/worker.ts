/** `parley/worker`: what runs in the worker of an engine, for bundlers that want to build it themselves. */
import '../web/src/worker/engine-worker.ts';
