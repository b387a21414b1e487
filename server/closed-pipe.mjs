/** What becomes of a process whose output cannot be written. Plain Node, because set-up uses it before anything is installed. */

/**
 * Lets a process go on when whoever reads its output has gone (`npm start | head -5`): what it still says is lost, and nothing else.
 * Any other failure to write is thrown, except on stderr, whose lines are about the work and no part of it.
 */
export function outliveReaders() {
  process.stdout.on('error', (error) => {
    if (error.code !== 'EPIPE') throw error;
  });
  process.stderr.on('error', () => {});
}

/** Lets a server go on whatever becomes of its output, which only tells of it: the disk may be full, or the terminal gone. */
export function outliveOutput() {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}
