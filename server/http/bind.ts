import type { Server } from 'node:net';

/**
 * Binds a server to host and port. 0.0.0.0 means every interface, also by IPv6 if the machine has it, since browsers try ::1 for localhost first. Rejects with the
 * system's error, whose `address` is the host as given.
 */
export async function bind(server: Server, port: number, host: string): Promise<void> {
  const bindTo = async (address: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const fail = (error: Error): void => reject(Object.assign(error, { address: host }));
      server.once('error', fail);
      server.listen(port, address, () => {
        server.off('error', fail);
        resolve();
      });
    });
  if (host !== '0.0.0.0') return bindTo(host);
  await bindTo('::').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE' || error.code === 'EACCES') throw error;
    return bindTo(host);
  });
}
