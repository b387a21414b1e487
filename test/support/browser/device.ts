/** Stands in for test/support/device.ts in a page's self-test: the same device on the browser's WebGPU. */
import { readShaders } from 'virtual:shaders';
import { Device } from '../../../engine/gpu/device.ts';
import type { DeviceOptions } from '../../../engine/gpu/open-adapter.ts';
import { createBrowserPlatform } from '../../../engine/platform/browser.ts';

/** A device for kernel cases on the browser's adapter. */
export async function testDevice(options: DeviceOptions = {}): Promise<Device> {
  const shaders = new Map(Object.entries(await readShaders()));
  return Device.create(createBrowserPlatform({ shaders }), options);
}
