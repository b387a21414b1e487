/** Stands in for test/support/device.ts in a page's self-test: the same device on the browser's WebGPU. */
import { Device } from '../../../engine/gpu/device.ts';
import type { DeviceOptions } from '../../../engine/gpu/device.ts';
import { createBrowserPlatform } from '../../../engine/platform/browser.ts';

/** A device for kernel cases on the browser's adapter. */
export async function testDevice(options: DeviceOptions = {}): Promise<Device> {
  const files = import.meta.glob<string>('../../../shaders/**/*.wgsl', { query: '?raw', import: 'default', eager: true });
  const shaders = new Map(Object.entries(files).map(([path, text]) => [path.replace('../../../shaders/', ''), text]));
  return Device.create(createBrowserPlatform({ shaders }), options);
}
