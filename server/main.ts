/** Entry: settings -> engine process -> three listeners -> signals. */
import { runServer } from './serve.ts';

await runServer(process.argv.slice(2), process.env);
