/** Entry of a child process: `parity-node.ts <result file> [feature ...]` measures on the adapter that the environment leaves, as if it lacked these. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { OptionalFeature } from '../../engine/gpu/caps.ts';
import { testDevice } from './device.ts';
import { measureParity } from './parity.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const clip = readFileSync(join(root, 'test', 'fixtures', 'parley-transcribe', 'clip.wav'));
const [file = '', ...disable] = process.argv.slice(2);
const device = await testDevice({ disable: disable as OptionalFeature[] });
const result = await measureParity(device, join(root, 'models'), clip);
writeFileSync(file, JSON.stringify({ adapter: device.info.name, errors: device.errors, result }));
process.exit(0);
