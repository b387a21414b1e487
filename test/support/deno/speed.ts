/** Entry of a Deno process: prints the ms that a token of the bundled chat model takes here, the middle one of some answers. */
import { argv } from 'node:process';
import { loadChat, tokenTimes } from '../chat-speed.ts';
import { testDevice } from './device.ts';

const device = await testDevice();
const engine = await loadChat(device, 'models');
console.log(JSON.stringify({ adapter: device.info.name, ms: await tokenTimes(engine, Number(argv[2])) }));
await engine.close();
