/** Facts about the browser and its adapter, as pairs (name, value) for the page and the report. */
import { EngineError } from '../../../engine/errors.ts';

export interface DeviceFacts {
  readonly adapter: readonly (readonly [string, string])[];
  readonly features: readonly string[];
  /** Name, value here, WebGPU's default. */
  readonly limits: readonly (readonly [string, number])[];
  readonly browser: readonly (readonly [string, string])[];
}

const LIMITS = [
  'maxBufferSize',
  'maxStorageBufferBindingSize',
  'maxStorageBuffersPerShaderStage',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'maxComputeWorkgroupsPerDimension',
] as const;

/** Collects the facts; without an adapter they say so. */
export async function collectFacts(): Promise<DeviceFacts> {
  const browser = browserFacts();
  const { gpu } = navigator as Partial<Navigator>;
  const adapter = await gpu?.requestAdapter().catch((error: unknown) => {
    throw new EngineError('no_adapter', String(error), { cause: error });
  });
  if (!adapter) return { adapter: [['adapter', gpu ? 'none offered' : 'no WebGPU']], features: [], limits: [], browser };
  const { info, limits, features } = adapter;
  return {
    adapter: [
      ['vendor', info.vendor || 'not told'],
      ['architecture', info.architecture || 'not told'],
      ['device', info.description || info.device || 'not told'],
      ['kind', info.isFallbackAdapter ? 'software (fallback adapter)' : 'hardware, as far as the browser tells'],
      ['subgroup size', info.subgroupMinSize ? `${info.subgroupMinSize} to ${info.subgroupMaxSize}` : 'not told'],
    ],
    features: [...features].sort(),
    limits: LIMITS.map((name) => [name, Number(limits[name])] as const),
    browser,
  };
}

function browserFacts(): DeviceFacts['browser'] {
  return [
    ['browser', navigator.userAgent],
    ['secure context', isSecureContext ? 'yes' : 'no'],
    ['cross-origin isolated', crossOriginIsolated ? 'yes' : 'no (not needed)'],
    ['private file system', typeof navigator.storage?.getDirectory === 'function' ? 'yes' : 'no'],
    ['processor threads', String(navigator.hardwareConcurrency)],
    ['memory', 'deviceMemory' in navigator ? `about ${String(navigator.deviceMemory)} GB` : 'not told'],
  ];
}
