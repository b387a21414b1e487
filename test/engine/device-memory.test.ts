/** What a device's memory is taken to be: by adapter class, with faked systems, and by trial allocation on a device that runs out. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { AdapterInfo } from '../../engine/api.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { allocate, deviceMemory } from '../../engine/gpu/memory.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { adapterMemory, tabMemory } from '../../engine/platform/memory.ts';
import type { SystemProbe } from '../../engine/platform/memory.ts';
import { testDevice } from '../support/device.ts';

// Puts WebGPU's constants on the global object.
createNodePlatform();

const GIB = 2 ** 30;
const adapter = (fields: Partial<AdapterInfo>): AdapterInfo => ({
  name: 'a card', vendor: '', architecture: '', software: false, family: 'generic', features: [], limits: {}, ...fields,
}); // prettier-ignore

const system = (fields: Partial<SystemProbe> = {}): SystemProbe => ({
  freeBytes: () => 16 * GIB,
  totalBytes: () => 32 * GIB,
  run: async () => undefined,
  read: () => undefined,
  list: () => [],
  ...fields,
});

describe('adapterMemory', () => {
  test('a software adapter gets half of the free system memory', async () => {
    expect(await adapterMemory(adapter({ software: true, vendor: 'nvidia' }), system())).toMatchObject({ bytes: 8 * GIB, sure: true });
  });

  test('an NVIDIA card is asked for by name, and the least free of several counts', async () => {
    const asked: string[] = [];
    const run = async (program: string, args: readonly string[]): Promise<string> => {
      asked.push([program, ...args].join(' '));
      return 'NVIDIA H200, 140000\nNVIDIA GeForce RTX 4090, 20000\nNVIDIA GeForce RTX 4090, 18000\n';
    };
    const memory = await adapterMemory(adapter({ vendor: 'nvidia', name: 'NVIDIA GeForce RTX 4090' }), system({ run }));
    expect(memory).toEqual({ bytes: 18000 * 2 ** 20, from: 'nvidia-smi', sure: true });
    expect(asked).toEqual(['nvidia-smi --query-gpu=name,memory.free --format=csv,noheader,nounits']);
    expect(await adapterMemory(adapter({ vendor: 'nvidia', name: 'device 10de' }), system({ run }))).toMatchObject({
      bytes: 18000 * 2 ** 20,
    });
  });

  test('an NVIDIA card without its tool is unknown', async () => {
    expect(await adapterMemory(adapter({ vendor: 'nvidia' }), system())).toMatchObject({ sure: false });
    expect(await adapterMemory(adapter({ vendor: 'nvidia' }), system({ run: async () => 'No devices were found\n' }))).toMatchObject({ sure: false }); // prettier-ignore
  });

  test('amdgpu tells what is free; an integrated one shares the system memory', async () => {
    const card = (total: number): Partial<SystemProbe> => ({
      list: () => ['card0', 'card1', 'renderD128'],
      read: (path) => (path.includes('card1') ? `${path.endsWith('total') ? total : GIB}\n` : undefined),
    });
    expect(await adapterMemory(adapter({ vendor: 'amd' }), system(card(16 * GIB)))).toMatchObject({ bytes: 15 * GIB, from: 'amdgpu' });
    expect(await adapterMemory(adapter({ vendor: 'amd' }), system(card(2 * GIB)))).toMatchObject({ bytes: 8 * GIB, sure: true });
    expect(await adapterMemory(adapter({ vendor: 'amd' }), system())).toMatchObject({ sure: false });
  });

  test('Apple and integrated Intel GPUs get half; a discrete Intel card is unknown', async () => {
    expect(await adapterMemory(adapter({ vendor: 'apple' }), system())).toMatchObject({ bytes: 16 * GIB });
    expect(await adapterMemory(adapter({ vendor: 'intel', name: 'Intel(R) UHD Graphics' }), system())).toMatchObject({ bytes: 8 * GIB });
    expect(await adapterMemory(adapter({ vendor: 'intel', name: 'Intel(R) Arc(TM) A770' }), system())).toMatchObject({ sure: false });
  });

  test('a tab knows the machine coarsely', () => {
    expect(tabMemory(adapter({ software: true }), 8)).toMatchObject({ bytes: GIB / 2, sure: true });
    expect(tabMemory(adapter({}), 32)).toMatchObject({ bytes: 8 * GIB, sure: false });
    expect(tabMemory(adapter({}), undefined)).toMatchObject({ bytes: 4 * GIB, sure: false });
  });
});

/** A device with so much memory that counts what is held. */
function fakeDevice(total: number, maxBufferBytes: number): { readonly device: Device; readonly held: Set<GPUBuffer> } {
  const held = new Set<GPUBuffer>();
  let failed = false;
  const device = {
    info: adapter({}),
    caps: { maxBufferBytes },
    stats: { bufferBytes: 0 },
    platform: { memory: async () => ({ bytes: 8 * GIB, from: 'trial allocation', sure: false }) },
    gpu: {
      pushErrorScope: () => (failed = false),
      popErrorScope: vi.fn(async () => (failed ? { message: 'out of memory' } : null)),
    },
    createBuffer(_label: string, size: number): GPUBuffer {
      failed = [...held].reduce((sum, buffer) => sum + buffer.size, 0) + size > total;
      const buffer = { size } as GPUBuffer;
      if (!failed) held.add(buffer);
      return buffer;
    },
    destroyBuffer: (buffer: GPUBuffer) => held.delete(buffer),
  } as unknown as Device;
  return { device, held };
}

describe('deviceMemory', () => {
  afterEach(() => vi.restoreAllMocks());

  test("the operator's number wins", async () => {
    expect(await deviceMemory(fakeDevice(GIB, GIB).device, 123)).toEqual({ bytes: 123, from: 'as set' });
  });

  test('an unknown device is tried to within 64 MiB, and everything is given back', async () => {
    const { device, held } = fakeDevice(2.3 * GIB, 4 * GIB);
    const { bytes } = await deviceMemory(device);
    expect(bytes).toBeLessThanOrEqual(2.3 * GIB);
    expect(bytes).toBeGreaterThan(2.3 * GIB - 2 ** 26);
    expect(held.size).toBe(0);
  });

  test('never more than the bound, nor buffers beyond the limit', async () => {
    expect((await deviceMemory(fakeDevice(100 * GIB, 2 ** 28).device)).bytes).toBe(8 * GIB);
    expect((await deviceMemory(fakeDevice(2 ** 20, 2 ** 28).device)).bytes).toBe(0);
  });

  test('the adapter at hand: a trial leaves no buffer behind', async () => {
    const device = await testDevice();
    const before = { ...device.stats };
    vi.spyOn(device.platform, 'memory').mockResolvedValue({ bytes: 2 ** 27, from: 'trial allocation', sure: false });
    expect((await deviceMemory(device)).bytes).toBe(before.bufferBytes + 2 ** 27);
    expect(device.stats).toMatchObject({ buffers: before.buffers, bufferBytes: before.bufferBytes });
    expect(device.errors).toEqual([]);
    device.close();
  });
});

describe('allocate', () => {
  test('what the device cannot give is an error that says what for', async () => {
    const { device } = fakeDevice(GIB, GIB);
    const make = (size: number) => allocate(device, 'the weights of a model', () => device.createBuffer('weights', size, 0));
    expect((await make(GIB / 2)).size).toBe(GIB / 2);
    await expect(make(GIB)).rejects.toMatchObject({
      code: 'out_of_memory',
      message: expect.stringMatching(/at the weights of a model/) as string,
    });
  });

  test('errors of its own pass, and the scope is closed', async () => {
    const { device } = fakeDevice(GIB, GIB);
    await expect(allocate(device, 'anything', () => Promise.reject(new Error('cut short')))).rejects.toThrow('cut short');
    expect(vi.mocked(device.gpu.popErrorScope)).toHaveBeenCalledTimes(1);
  });

  test('a device that is refused memory where nobody asks for the answer is lost, so that nothing is read from what it lacks', async () => {
    const device = await testDevice();
    vi.spyOn(device.platform, 'log').mockImplementation(() => undefined);
    const tensor = device.upload('t', 'u32', [4], Uint32Array.of(1, 2, 3, 4));
    const reading = device.read(tensor);
    const event = Object.assign(new Event('uncapturederror'), { error: new GPUOutOfMemoryError('no room for a buffer') });
    device.gpu.dispatchEvent(event);
    await expect(reading).rejects.toThrow();
    expect(await device.lost).toBe('out of memory: no room for a buffer');
  });

  test('the adapter at hand gives what it has', async () => {
    const device = await testDevice();
    const tensor = await allocate(device, 'a tensor', () => device.upload('t', 'u32', [4], Uint32Array.of(1, 2, 3, 4)));
    expect(await device.read(tensor)).toEqual(Uint32Array.of(1, 2, 3, 4));
    device.close();
  });
});
