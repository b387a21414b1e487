/** Models that are prepared but not loaded: their memory demand is known, and nothing of them is on the device. */
import type { MemoryPlan, ModelMemory } from '../api.ts';
import type { EngineConfig } from '../config.ts';
import type { Device } from '../gpu/device.ts';
import { deviceMemory } from '../gpu/memory.ts';
import type { Platform } from '../platform/platform.ts';
import { planModels } from '../runner/memory-plan.ts';
import type { ModelDemand } from '../runner/memory-plan.ts';
import { describePlan } from '../util/memory.ts';

/** A model whose configuration has been read. */
export interface Prepared<Task> {
  /** Memory that it needs; absent for a model that is split over several devices, whose ranks plan for themselves. */
  readonly demand?: ModelDemand;
  /** Loads the model within its share of the memory plan. */
  load(memory: ModelMemory | undefined): Promise<Task>;
}

/** Plans the memory of a device for all models that it will hold, and logs the plan. Throws EngineError('out_of_memory') if they do not fit. */
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

/** Plans and loads a model that has its device to itself. */
export async function loadAlone<Task>(device: Device, platform: Platform, config: EngineConfig, prepared: Prepared<Task>): Promise<Task> {
  if (!prepared.demand) return prepared.load(undefined);
  return prepared.load((await planDevice(device, platform, config, [prepared])).models[0]);
}
