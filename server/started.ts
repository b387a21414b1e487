/** The server's tie to the process that starts it for `npm start` and `npx parley` (setup/start.mjs). */

/** That process says by it that it holds the other end of the channel. Whoever else starts a server with one may leave it running. */
const STARTED = 'PARLEY_STARTED';

/** Ends this server as SIGTERM does when the process that started it is gone: killed, it passes no signal on, and would leave the ports taken. */
export function endWithStarter(env: NodeJS.ProcessEnv): void {
  if (env[STARTED] === undefined) return;
  // Not for the processes that this one starts.
  delete env[STARTED];
  const end = (): void => void process.kill(process.pid, 'SIGTERM');
  process.once('disconnect', end);
  // What only prints something (`--help`) ends by itself.
  process.channel?.unref();
  if (process.connected === false) end();
}
