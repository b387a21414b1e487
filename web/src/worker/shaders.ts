/** The project's .wgsl files by their path below shaders/, as the build put them together. */
import { readShaders } from 'virtual:shaders';

/** Fetches them once for a worker. */
export async function bundledShaders(): Promise<ReadonlyMap<string, string>> {
  return new Map(Object.entries(await readShaders()));
}
