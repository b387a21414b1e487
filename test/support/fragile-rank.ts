/** A rank's thread that can be made to lose its device or to fail. */
import { main as serve } from '../../engine/parallel/rank-worker.ts';
import type { Platform, WorkerPort } from '../../engine/platform/platform.ts';
import { noting } from './noted-devices.ts';

/** How a rank goes. */
export type Fate = 'lose its device' | 'fail';

export interface FateMessage {
  readonly fate: Fate;
}

/** Serves as a rank does until a FateMessage comes. */
export function main(platform: Platform, port: WorkerPort): void {
  const devices: GPUDevice[] = [];
  serve(
    noting(platform, (device) => devices.push(device)),
    {
      ...port,
      onMessage: (callback) =>
        port.onMessage((message) => {
          const { fate } = message as Partial<FateMessage>;
          if (fate === undefined) callback(message);
          else for (const device of devices) meet(fate, device);
        }),
    },
  );
}

function meet(fate: Fate, device: GPUDevice): void {
  if (fate === 'lose its device') return device.destroy();
  device.queue.submit = () => {
    throw new Error('made to fail');
  };
}
