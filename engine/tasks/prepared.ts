/** A model between its configuration and its weights: what it needs is known, nothing of it is on the device. */
import type { MemoryPlan, ModelMemory } from '../api.ts';
import type { EngineConfig } from '../config.ts';
import type { Device } from '../gpu/device.ts';
import { deviceMemory } from '../gpu/memory.ts';
import type { Platform } from '../platform/platform.ts';
import { planModels } from '../runner/memory-plan.ts';
import type { ModelDemand } from '../runner/memory-plan.ts';
import { describePlan } from '../util/memory.ts';

export interface Prepared<Task> {
  /** Absent for a model that plans for itself, because it is split over devices of its own. */
  readonly demand?: ModelDemand;
  /** Loads it within its part of the plan. */
  load(memory: ModelMemory | undefined): Promise<Task>;
}

/** The plan of a device for the models that come onto it; throws EngineError('out_of_memory') when they do not fit. Says it in the log. */
export async function planDevice(
  device: Device,
  platform: Platform,
  config: EngineConfig,
  prepared: readonly Prepared<unknown>[],
): Promise<MemoryPlan> {
  const demands = prepared.flatMap(({ demand }) => demand ?? []);
  const memory = await deviceMemory(device, config.deviceMemory);
  const { maxBindingBytes } = device.caps;
  const share = { memory, fraction: config.memFractionStatic, maxBindingBytes, taken: device.stats.bufferBytes };
  const plan = planModels(share, demands);
  for (const line of describePlan(plan)) platform.log(`memory plan: ${line}`);
  return plan;
}

/** Loads one model that shares its device with none. */
export async function loadAlone<Task>(device: Device, platform: Platform, config: EngineConfig, prepared: Prepared<Task>): Promise<Task> {
  if (!prepared.demand) return prepared.load(undefined);
  return prepared.load((await planDevice(device, platform, config, [prepared])).models[0]);
}
