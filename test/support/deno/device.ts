/** Stands in for test/support/device.ts under Deno, by import-map.json. */
import { Device } from '../../../engine/gpu/device.ts';
import type { DeviceOptions } from '../../../engine/gpu/open-adapter.ts';
import { createDenoPlatform } from '../../../engine/platform/deno.ts';

/** A device for kernel cases on Deno's adapter. */
export async function testDevice(options: DeviceOptions = {}): Promise<Device> {
  return Device.create(createDenoPlatform(), options);
}
