/** The whole server as a process, with a fake engine process. */
import { runServer } from '../../server/serve.ts';

await runServer(process.argv.slice(2), process.env, new URL('./fake-engine-process.ts', import.meta.url));
