/** Plain Node, because set-up uses it before anything is installed. */

/**
 * Lets a process go on when whoever reads its output has gone (`npm start | head -5`): what it still says is lost, and nothing else.
 * Any other failure to write is thrown.
 */
export function outliveReaders() {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}
