/** How child processes and worker threads of the server run TypeScript. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

/** Node options that load tsx, whatever the working directory and however this process itself was started. */
export const TSX_ARGV: readonly string[] = ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href];
