/** A codec worker that hangs or dies where a file says so, or dies of a sample that is no number, and is the server's for all others. */
import { parentPort } from 'node:worker_threads';
import type { CodecRequest } from '../../server/audio/worker.ts';
import '../../server/audio/worker.ts';

// The server's listener has had the file by now, but answers after this.
parentPort!.on('message', (request: CodecRequest) => {
  if (request.type === 'push' && Number.isNaN(request.samples[0])) process.exit(1);
  if (request.type !== 'decode') return;
  const word = Buffer.from(request.blocks[0]!.subarray(0, 4)).toString('latin1');
  if (word === 'DIES') process.exit(1);
  if (word === 'HANG') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
});
