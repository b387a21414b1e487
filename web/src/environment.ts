/** Whether this page can run an engine here, and if not, why. */
export type Environment = 'unknown' | 'ready' | 'software' | 'insecure' | 'no-webgpu' | 'no-adapter';

/** Requests an adapter once to find out; the engine's workers request their own. */
export async function detectEnvironment(): Promise<Environment> {
  const { gpu } = navigator as Partial<Navigator>;
  // On plain http, except on localhost, browsers hide WebGPU: that is not the browser's fault, and must not be reported as such.
  if (!gpu) return isSecureContext ? 'no-webgpu' : 'insecure';
  const adapter = await gpu.requestAdapter().catch(() => null);
  if (!adapter) return 'no-adapter';
  const { info } = adapter;
  return info.isFallbackAdapter || /swiftshader|llvmpipe/i.test(`${info.architecture} ${info.description}`) ? 'software' : 'ready';
}

/** Whether the tab can run an engine. */
export function canCompute(environment: Environment): boolean {
  return environment === 'ready' || environment === 'software' || environment === 'unknown';
}
