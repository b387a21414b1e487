/** The project's .wgsl files by their path below shaders/, as bundled by the build. */
import { readShaders } from 'virtual:shaders';

/** Fetches the shaders, once per worker. */
export async function bundledShaders(): Promise<ReadonlyMap<string, string>> {
  return new Map(Object.entries(await readShaders()));
}
