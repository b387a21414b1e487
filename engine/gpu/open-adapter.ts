/** Opens an adapter with all features that the engine can use, and determines its capabilities. */
import type { AdapterInfo } from '../api.ts';
import type { AdapterRequest, DiskCompiler, Platform } from '../platform/platform.ts';
import { OPTIONAL_FEATURES, capsWithout } from './caps.ts';
import type { Caps, OptionalFeature } from './caps.ts';
import { HALVES, SUBGROUP_MATRIX, matrixSize } from './matrices.ts';
import { TEXEL_ROW } from './tensor.ts';

export interface DeviceOptions extends AdapterRequest {
  /** Features to pretend that the adapter lacks: tests run the kernels that do without them. */
  readonly disable?: readonly OptionalFeature[];
  /** Names of kernels and fragments to do without. */
  readonly avoid?: readonly string[];
}

/** An adapter with its device. */
export interface OpenedAdapter {
  readonly gpu: GPUDevice;
  readonly info: AdapterInfo;
  readonly caps: Caps;
  /** The map behind `caps.tuned`, still empty. */
  readonly tuned: Map<string, string>;
  readonly diskCompiler: DiskCompiler | undefined;
}

const WANTED_LIMITS = [
  'maxBufferSize',
  'maxStorageBufferBindingSize',
  'maxStorageBuffersPerShaderStage',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'maxComputeWorkgroupSizeY',
  'minUniformBufferOffsetAlignment',
  'minStorageBufferOffsetAlignment',
  'maxTextureDimension2D',
] as const;

/** A feature that only Dawn has. */
const SIZE_CONTROL = 'subgroup-size-control';

/** Features and limits to request beyond the defaults. */
interface WantedFeatures {
  readonly subgroups: boolean;
  readonly timestamps: boolean;
  readonly sizeControl: boolean;
  /** M = N = K of the subgroup matrices; 0 = none. */
  readonly matrixSize: number;
  readonly names: readonly GPUFeatureName[];
}

/** Opens the adapter that the request names, or the platform's best, with all features and limits that the engine can use. */
export async function openAdapter(platform: Platform, options: DeviceOptions): Promise<OpenedAdapter> {
  const adapter = await platform.requestAdapter(options);
  const { info } = adapter;
  const features = wantedFeatures(adapter, options);
  const requiredLimits: Record<string, number> = {};
  for (const limit of WANTED_LIMITS) requiredLimits[limit] = adapter.limits[limit];
  const gpu = await adapter.requestDevice({ label: 'parley', requiredFeatures: [...features.names], requiredLimits });
  const software = isSoftware(adapter);
  platform.deviceCreated(software);
  const tuned = new Map<string, string>();
  const caps = await capsOf(gpu, adapter, features, { ...options, software, tuned });
  return {
    gpu,
    caps,
    tuned,
    diskCompiler: platform.diskCompiler?.(adapter),
    info: {
      name: info.description || info.device || info.vendor || 'unknown adapter',
      vendor: info.vendor,
      architecture: info.architecture,
      software,
      family: caps.family,
      features: features.names,
      limits: requiredLimits,
    },
  };
}

function wantedFeatures({ features, info }: GPUAdapter, { disable = [] }: DeviceOptions): WantedFeatures {
  const subgroups = features.has('subgroups') && !disable.includes('subgroups');
  const timestamps = features.has('timestamp-query') && !disable.includes('timestamps');
  const sizeControl = subgroups && features.has(SIZE_CONTROL);
  const size = subgroups && features.has(SUBGROUP_MATRIX) && features.has(HALVES) ? matrixSize(info) : 0;
  const names = [
    ...(subgroups ? ['subgroups'] : []),
    ...(timestamps ? ['timestamp-query'] : []),
    ...(sizeControl ? [SIZE_CONTROL] : []),
    ...(size > 0 ? [SUBGROUP_MATRIX, HALVES] : []),
  ];
  // Some are experimental, so their names are not in the types.
  return { subgroups, timestamps, sizeControl, matrixSize: size, names: names as GPUFeatureName[] };
}

async function capsOf(
  gpu: GPUDevice,
  { info }: GPUAdapter,
  { subgroups, timestamps, sizeControl, matrixSize: size }: WantedFeatures,
  { disable = [], avoid, software, tuned }: DeviceOptions & { readonly software: boolean; readonly tuned: ReadonlyMap<string, string> },
): Promise<Caps> {
  const { limits } = gpu;
  const offered: Caps = {
    subgroups: true,
    subgroupMinSize: info.subgroupMinSize ?? 4,
    subgroupMaxSize: info.subgroupMaxSize ?? 128,
    subgroupSizeControl: sizeControl,
    matrixSize: size,
    timestamps: true,
    software,
    family: software ? 'cpu' : 'generic',
    maxBindingBytes: limits.maxStorageBufferBindingSize,
    maxBufferBytes: limits.maxBufferSize,
    maxTexels: TEXEL_ROW * limits.maxTextureDimension2D,
    maxWorkgroupBytes: limits.maxComputeWorkgroupStorageSize,
    maxStorageBuffers: limits.maxStorageBuffersPerShaderStage,
    maxInvocations: limits.maxComputeInvocationsPerWorkgroup,
    avoid: new Set(avoid),
    tuned,
  };
  const textures = !disable.includes('textures') && (await readsTextures(gpu));
  const offers = { subgroups, timestamps, software: !disable.includes('software'), textures };
  return capsWithout(
    offered,
    OPTIONAL_FEATURES.filter((feature) => !offers[feature]),
  );
}

/** Whether kernels can read storage textures, a language feature that not every WGSL implementation has. */
async function readsTextures(gpu: GPUDevice): Promise<boolean> {
  const code = `
    @group(0) @binding(0) var words: texture_storage_2d<rgba32uint, read>;
    @compute @workgroup_size(1) fn main() { _ = textureLoad(words, vec2<u32>()); }`;
  gpu.pushErrorScope('validation');
  const { messages } = await gpu.createShaderModule({ label: 'storage textures', code }).getCompilationInfo();
  await gpu.popErrorScope();
  return messages.every(({ type }) => type !== 'error');
}

function isSoftware(adapter: GPUAdapter): boolean {
  const { info } = adapter;
  return (
    info.isFallbackAdapter || /llvmpipe|swiftshader|lavapipe|basic render/i.test(`${info.description} ${info.device} ${info.architecture}`)
  );
}
