/** Entry of a Deno process: prints what parity-node.ts measures, as a line of JSON. */
import { readFileSync } from 'node:fs';
import { measureParity } from '../parity.ts';
import { testDevice } from './device.ts';

const clip = readFileSync('test/fixtures/parley-transcribe/clip.wav');
const device = await testDevice();
const result = await measureParity(device, 'models', clip);
console.log(JSON.stringify({ adapter: device.info.name, errors: device.errors, result }));
device.close();
