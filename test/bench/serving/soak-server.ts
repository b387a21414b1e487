/** The server as it is, in processes that collect their garbage when told. */
import { runServer } from '../../../server/serve.ts';
import { collectOnSignal } from './collect-garbage.ts';

collectOnSignal();
await runServer(process.argv.slice(2), process.env, new URL('./soak-engine.ts', import.meta.url));
