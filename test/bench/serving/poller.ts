/** A process of its own that asks addresses in turn until it is told to stop, and then writes how long each answer took, as JSON. */
import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const INTERVAL_MS = 20;
const addresses = process.argv.slice(2);
const times: Record<string, number[]> = Object.fromEntries(addresses.map((address) => [address, []]));
const agent = new Agent({ keepAlive: true });
let stopped = false;
process.on('SIGTERM', () => (stopped = true));

function ask(address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const from = performance.now();
    const request = httpRequest(address, { agent }, (response) => {
      response.resume();
      response.on('end', () => {
        if (response.statusCode !== 200) reject(new Error(`${address}: ${response.statusCode}`));
        else resolve(performance.now() - from);
      });
    });
    request.on('error', reject);
    request.end();
  });
}

// The first of a connection, and of code that is not compiled yet, are not what is asked for.
for (let i = 0; i < 20; i++) for (const address of addresses) await ask(address);
process.stdout.write('begins\n');
while (!stopped) {
  for (const address of addresses) times[address]!.push(await ask(address));
  await sleep(INTERVAL_MS);
}
process.stdout.write(JSON.stringify(times));
agent.destroy();
