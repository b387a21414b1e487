import { createNodePlatform } from '../../engine/platform/node.ts';
import { Device } from '../../engine/gpu/device.ts';
import type { DeviceOptions } from '../../engine/gpu/open-adapter.ts';
import type { NodePlatformOptions } from '../../engine/platform/node.ts';
import { workOf } from '../../engine/ops/kernel-work.ts';
import { recycling } from './recycled-devices.ts';

/**
 * A device for tests; PARLEY_ADAPTER picks the adapter by a part of its name. There is no skip: `npm test` installs a software
 * adapter where there is no other, so a missing one is a failure. It counts what kernels write, for their cases. `toggles`: as the library and --dawn-toggles
 * have them; pages and Deno have no such choice.
 */
export async function testDevice(options: DeviceOptions = {}, { toggles }: Pick<NodePlatformOptions, 'toggles'> = {}): Promise<Device> {
  const name = process.env['PARLEY_ADAPTER'];
  const device = await Device.create(createNodePlatform({ ...(toggles && { toggles }) }), { ...(name ? { name } : {}), ...options });
  device.profiler.counter = workOf;
  return device;
}

/** The same on a platform that gives the devices of closed ranks to those after them, where ranks share a thread. */
export async function testDeviceForRanks(): Promise<Device> {
  const name = process.env['PARLEY_ADAPTER'];
  return Device.create(recycling(createNodePlatform()), name ? { name } : {});
}
