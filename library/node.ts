/** `parley` in Node: models run in a process of their own. */
import { CodecPool } from '../server/audio/pool.ts';
import { Blocks } from '../server/body/blocks.ts';
import { createParley } from './parley.ts';
import { start } from './start.ts';
import type { LoadOptions, Parley as ParleyInstance, ParleyConstructor } from './types.ts';

export * from './errors.ts';
export { Stream } from './stream.ts';
export type * from './types.ts';

/** Loads models into an engine process. */
export const Parley: ParleyConstructor = { load };
export type Parley = ParleyInstance;

async function load(options: LoadOptions): Promise<ParleyInstance> {
  const { engine, config } = await start(options);
  const codec = new CodecPool(1);
  return createParley({
    engine: (task) => (config[task] ? engine : undefined),
    encoders: codec,
    speechFormat: 'mp3',
    decode: async (bytes, signal) => codec.decode(Blocks.of([bytes]), signal),
    close: async () => {
      await Promise.all([engine.close(), codec.close()]);
    },
  });
}
