/** The codec threads that the tests of a file share: a thread takes longer to start than most of these tests take. */
import { CodecPool } from '../../server/audio/pool.ts';

let shared: CodecPool | undefined;

export function sharedCodec(): CodecPool {
  shared ??= new CodecPool(1);
  return shared;
}

/** Ends the threads, and removes their temporary folder. */
export async function closeSharedCodec(): Promise<void> {
  const codec = shared;
  shared = undefined;
  await codec?.close();
}
