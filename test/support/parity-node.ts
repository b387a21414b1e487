/** Entry of a child process: `parity-node.ts <result file>` measures on the adapter that the environment leaves. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { testDevice } from './device.ts';
import { measureParity } from './parity.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const clip = readFileSync(join(root, 'test', 'fixtures', 'parley-transcribe', 'clip.wav'));
const device = await testDevice();
const result = await measureParity(device, join(root, 'models'), clip);
writeFileSync(process.argv[2]!, JSON.stringify({ adapter: device.info.name, errors: device.errors, result }));
process.exit(0);
