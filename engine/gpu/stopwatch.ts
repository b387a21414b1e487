import type { Device } from './device.ts';
import type { Recorder } from './recorder.ts';

/** Milliseconds that the device takes for `repeats` recordings in one submission: by its own clock where it has timestamps, else by the host's. Copies are not timed by the former. */
export async function timeSteps(device: Device, record: (rec: Recorder) => void, repeats: number): Promise<number> {
  const repeated = (rec: Recorder): void => {
    for (let i = 0; i < repeats; i++) record(rec);
  };
  return device.caps.timestamps ? byDevice(device, repeated) : byHost(device, repeated);
}

async function byHost(device: Device, record: (rec: Recorder) => void): Promise<number> {
  const rec = device.record('timed');
  record(rec);
  const from = performance.now();
  await rec.submit().finished();
  return performance.now() - from;
}

/** Times one pass by timestamps at both ends. Browsers round these to 100 us, so single dispatches could not be timed. */
async function byDevice(device: Device, record: (rec: Recorder) => void): Promise<number> {
  const { gpu, waits } = device;
  const { steps } = device.capture('timed', record);
  const queries = gpu.createQuerySet({ type: 'timestamp', count: 2 });
  const resolved = gpu.createBuffer({ size: 16, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
  const staging = gpu.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  try {
    const encoder = gpu.createCommandEncoder();
    const pass = encoder.beginComputePass({ timestampWrites: { querySet: queries, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 } });
    for (const step of steps) {
      if (step.kind !== 'dispatch') continue;
      pass.setPipeline(step.pipeline);
      pass.setBindGroup(0, step.group, step.offsets as number[]);
      pass.dispatchWorkgroups(step.x, step.y, step.z);
    }
    pass.end();
    encoder.resolveQuerySet(queries, 0, 2, resolved, 0);
    encoder.copyBufferToBuffer(resolved, 0, staging, 0, 16);
    gpu.queue.submit([encoder.finish()]);
    await waits.until(staging.mapAsync(GPUMapMode.READ));
    const [from = 0n, to = 0n] = new BigUint64Array(staging.getMappedRange());
    return Number(to - from) / 1e6;
  } finally {
    for (const buffer of [resolved, staging]) buffer.destroy();
    queries.destroy();
  }
}
