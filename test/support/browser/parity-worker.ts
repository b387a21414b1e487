/** The tab's side of test/everywhere/parity.test.ts: told where the checkpoints and the clip are, answers with what it measured. */
import { espeak } from 'virtual:espeak';
import { readShaders } from 'virtual:shaders';
import { Device } from '../../../engine/gpu/device.ts';
import { createBrowserPlatform } from '../../../engine/platform/browser.ts';
import { measureParity } from '../parity.ts';

self.addEventListener('message', ({ data }: MessageEvent<{ readonly models: string; readonly clip: string }>) => {
  measure(data).then(
    (answer) => self.postMessage(answer),
    (error: unknown) => self.postMessage({ problem: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});

async function measure({ models, clip }: { readonly models: string; readonly clip: string }): Promise<unknown> {
  const wav = new Uint8Array(await (await fetch(clip)).arrayBuffer());
  const shaders = new Map(Object.entries(await readShaders()));
  const device = await Device.create(createBrowserPlatform({ shaders, espeak }));
  const result = await measureParity(device, models, wav);
  return { adapter: device.info.architecture, errors: device.errors, result };
}
