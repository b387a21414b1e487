/**
 * The image's health check: exits with 0 if every listener answers /health with 200, else with 1 and a line for each that does not. It takes the listeners' ports
 * from the environment, or from its arguments: `node healthcheck.mjs 3000 3001`.
 */
import { get as getPlain } from 'node:http';
import { get as getSecure } from 'node:https';

const TIMEOUT_MS = 4_000;
const LISTENERS = [
  ['PARLEY_PORT', 'PARLEY_CHAT_MODEL', 3000],
  ['PARLEY_SPEECH_PORT', 'PARLEY_SPEECH_MODEL', 3001],
  ['PARLEY_TRANSCRIPTION_PORT', 'PARLEY_TRANSCRIPTION_MODEL', 3002],
];

/** The certificate is for clients that use its name; it is not checked here. */
const get = process.env.PARLEY_TLS_CERT === undefined ? getPlain : getSecure;
const given = process.argv.slice(2);
const ports =
  given.length > 0
    ? given
    : LISTENERS.filter(([, model]) => process.env[model] !== 'none').map(([port, , usual]) => process.env[port] ?? usual);

const problems = await Promise.all(ports.map(problemOf));
for (const problem of problems) if (problem !== undefined) process.stdout.write(`${problem}\n`);
process.exitCode = problems.some((problem) => problem !== undefined) ? 1 : 0;

/** Why a port is not healthy; undefined if it is. */
function problemOf(port) {
  return new Promise((resolve) => {
    const address = { host: '127.0.0.1', port, path: '/health' };
    const request = get({ ...address, timeout: TIMEOUT_MS, agent: false, rejectUnauthorized: false }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode === 200 ? undefined : `port ${port}: /health answers ${response.statusCode}`));
    });
    request.on('timeout', () => request.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
    request.on('error', ({ message }) => resolve(`port ${port}: ${message}`));
  });
}
