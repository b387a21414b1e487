/** Whether this page can compute here, and if not, why. */
export type Environment = 'unknown' | 'ready' | 'software' | 'insecure' | 'no-webgpu' | 'no-adapter';

/** Asks for an adapter once; the engine's workers ask again for themselves. */
export async function detectEnvironment(): Promise<Environment> {
  const { gpu } = navigator as Partial<Navigator>;
  // On plain http under another name than localhost the API is hidden, which must not be blamed on the browser.
  if (!gpu) return isSecureContext ? 'no-webgpu' : 'insecure';
  const adapter = await gpu.requestAdapter().catch(() => null);
  if (!adapter) return 'no-adapter';
  const { info } = adapter;
  return info.isFallbackAdapter || /swiftshader|llvmpipe/i.test(`${info.architecture} ${info.description}`) ? 'software' : 'ready';
}

/** True where the tab can run the engine. */
export function canCompute(environment: Environment): boolean {
  return environment === 'ready' || environment === 'software' || environment === 'unknown';
}
