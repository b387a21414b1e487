import { createNodePlatform } from '../../engine/platform/node.ts';
import { Device } from '../../engine/gpu/device.ts';
import type { DeviceOptions } from '../../engine/gpu/device.ts';

/**
 * A device for tests; PARLEY_ADAPTER picks the adapter by a part of its name. There is no skip: `npm test` installs a software
 * adapter where there is no other, so a missing one is a failure.
 */
export async function testDevice(options: DeviceOptions = {}): Promise<Device> {
  const name = process.env['PARLEY_ADAPTER'];
  return Device.create(createNodePlatform(), { ...(name ? { name } : {}), ...options });
}
