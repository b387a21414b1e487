/** A platform that tells of the devices it gives, so that a test can take them away. */
import type { Platform } from '../../engine/platform/platform.ts';

/** The same platform; `note` gets every device that is opened, and the name that its adapter was asked for by. */
export function noting(platform: Platform, note: (device: GPUDevice, name: string | undefined) => void): Platform {
  return {
    ...platform,
    async requestAdapter(request) {
      const adapter = await platform.requestAdapter(request);
      const open = adapter.requestDevice.bind(adapter);
      adapter.requestDevice = async (descriptor) => {
        const device = await open(descriptor);
        note(device, request.name);
        return device;
      };
      return adapter;
    },
  };
}
