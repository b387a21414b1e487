/** The version of this package, as package.json has it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './setup/layout.mjs';

export const VERSION = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string }).version;
