/** Loads the models of the three tasks onto their devices (one, if they share it), and serves them as one Engine with one state. */
import type { EngineInfo, EngineStatus, KernelReport, MemoryPlan, ProfileEntry, TunedKernel } from '../api.ts';
import { chatAdapters } from '../config.ts';
import type { EngineConfig, ModelSource } from '../config.ts';
import { EngineError, engineClosing, namingModel } from '../errors.ts';
import { Device } from '../gpu/device.ts';
import { KernelFault } from '../gpu/kernel-fault.ts';
import type { ModelTask } from '../model-types.ts';
import { REPLACEABLE, replaceableOf } from '../ops/replaceable.ts';
import type { Replaceable } from '../ops/replaceable.ts';
import type { Platform } from '../platform/platform.ts';
import { operations } from '../protocol.ts';
import type { Engine, OperationName, Operations, TaskOperations } from '../protocol.ts';
import { EMPTY_CHAT_STATUS } from '../status.ts';
import { stepWork } from '../ops/kernel-work.ts';
import { beginTuning, endTuning } from '../runner/tuned-kernels.ts';
import { ChatEngine } from './chat-engine.ts';
import { planDevice } from './prepared.ts';
import type { Prepared } from './prepared.ts';
import { Synthesizer } from './synthesizer.ts';
import { Transcriber } from './transcriber.ts';

/** Plans the memory of every model the configuration names, then loads them one after the other and warms their kernels up. */
export async function createEngine(
  platform: Platform,
  config: EngineConfig,
  /** Called with the memory plan of each device, before its models are loaded; again if all is loaded anew without a kernel. */
  planned?: (plan: MemoryPlan) => void,
): Promise<Engine> {
  const avoided = new Map<Replaceable, string>();
  for (;;) {
    try {
      return await loadEngine(platform, config, avoided, planned);
    } catch (error) {
      if (!(error instanceof KernelFault)) throw error;
      // What is loaded was shaped for the kernels that failed: all is loaded again without them.
      for (const [name, why] of replacements(error, avoided)) {
        avoided.set(name, why);
        platform.log(`self-test: ${name} ${why}; ${REPLACEABLE[name]} takes its place`);
      }
    }
  }
}

/**
 * The failed kernels that have a fallback, each with the reason; throws the fault if there is none. A fault that names only some replaceable kernels
 * is not final: a test case runs more than its own kernel, so an irreplaceable one may pass once the others are replaced.
 */
function replacements(fault: KernelFault, avoided: ReadonlyMap<Replaceable, string>): Map<Replaceable, string> {
  const found = new Map<Replaceable, string>();
  for (const one of fault.faults) {
    const name = replaceableOf(one, new Set(avoided.keys()));
    if (name !== undefined) found.set(name, one.why);
  }
  if (found.size === 0) throw fault;
  return found;
}

async function loadEngine(
  platform: Platform,
  config: EngineConfig,
  avoided: ReadonlyMap<Replaceable, string>,
  planned: ((plan: MemoryPlan) => void) | undefined,
): Promise<Engine> {
  const devices = new TaskDevices(platform, config, [...avoided.keys()]);
  const tasks: Closable[] = [];
  try {
    const prepare = async <T extends Closable>(task: ModelTask, taskClass: TaskClass<T>): Promise<PlacedModel<T> | undefined> => {
      const source = config[task];
      if (!source) return undefined;
      const device = await devices.of(task);
      const { path } = source;
      return { ...(await namingModel(path, taskClass.prepare(device, platform, source, config))), path, device };
    };
    const prepared = {
      transcription: await prepare('transcription', Transcriber),
      speech: await prepare('speech', Synthesizer),
      chat: await prepare('chat', ChatEngine),
    };
    const memory = await planDevices(devices, platform, config, Object.values(prepared));
    for (const plan of memory.values()) planned?.(plan);
    const load = async <T extends Closable>(model: PlacedModel<T> | undefined): Promise<T | undefined> => {
      if (!model) return undefined;
      const own = memory.get(model.device)?.models.find(({ task }) => task === model.demand?.task);
      const task = await namingModel(model.path, model.load(own));
      tasks.push(task);
      return task;
    };
    const transcription = await load(prepared.transcription);
    const speech = await load(prepared.speech);
    const chat = await load<ChatEngine>(prepared.chat);
    const tuned: TunedKernel[] = [];
    for (const device of devices.all) tuned.push(...(await endTuning(device)));
    const { tested = 0, tuned: byRanks = [] } = chat?.rankKernels ?? {};
    const kernels = reportKernels(
      avoided,
      devices.all.reduce((sum, device) => sum + device.tested.size, tested),
      [...tuned, ...byRanks],
    );
    await devices.endCompiling();
    const engine = new LocalEngine(devices, { chat, speech, transcription }, [...memory.values()], kernels);
    return Object.assign(engine, engine.operations());
  } catch (error) {
    const cause = await devices.causeOf(error);
    await devices.endCompiling();
    await Promise.allSettled(tasks.map((task) => task.close()));
    devices.close();
    throw cause;
  }
}

/** A loaded task, which may have threads of its own. */
interface Closable {
  close(): Promise<void>;
}

/** The static side of a task's class, through which its model is prepared. */
interface TaskClass<T> {
  prepare(device: Device, platform: Platform, source: ModelSource, config: EngineConfig): Promise<Prepared<T>>;
}

/** A prepared model with its path and the device that it will be loaded onto. */
interface PlacedModel<T> extends Prepared<T> {
  readonly path: string;
  readonly device: Device;
}

/** Memory plans of the devices that hold models. A split chat model has no demand here: its ranks plan their own memory. */
async function planDevices(
  devices: TaskDevices,
  platform: Platform,
  config: EngineConfig,
  models: readonly (PlacedModel<unknown> | undefined)[],
): Promise<ReadonlyMap<Device, MemoryPlan>> {
  const plans = new Map<Device, MemoryPlan>();
  for (const device of [...devices.all].reverse()) {
    const own = models.flatMap((model) => (model?.device === device && model.demand ? [model] : []));
    if (own.length > 0) plans.set(device, await planDevice(device, platform, config, own));
  }
  return plans;
}

/** Devices by task: tasks that name the same adapter share one device. */
class TaskDevices {
  readonly #platform: Platform;
  readonly #config: EngineConfig;
  readonly #avoid: readonly Replaceable[];
  readonly #byTask = new Map<ModelTask, Device>();
  readonly #byName = new Map<string | undefined, Device>();

  constructor(platform: Platform, config: EngineConfig, avoid: readonly Replaceable[]) {
    this.#platform = platform;
    this.#config = config;
    this.#avoid = avoid;
  }

  /** All devices, in the order they were opened. */
  get all(): readonly Device[] {
    return [...this.#byName.values()];
  }

  async of(task: ModelTask): Promise<Device> {
    const name = task === 'chat' ? chatAdapters(this.#config)[0] : (this.#config[`${task}Adapter`] ?? this.#config.adapter);
    const device = this.#byName.get(name) ?? (await this.#open(name));
    this.#byTask.set(task, device);
    return device;
  }

  async #open(name: string | undefined): Promise<Device> {
    const device = await Device.create(this.#platform, { avoid: this.#avoid, ...(name !== undefined && { name }) });
    // At once, so that it is closed whatever fails.
    this.#byName.set(name, device);
    device.profiler.counter = stepWork;
    if (this.#config.autotune) await beginTuning(device);
    device.beginParallelCompiling();
    return device;
  }

  /** The device of a task that has been opened. */
  get(task: ModelTask): Device | undefined {
    return this.#byTask.get(task);
  }

  /** The error to report for a failed load: if a device was lost, that is the cause, and `error` only follows from it. A refusal is reported as it is. */
  async causeOf(error: unknown): Promise<unknown> {
    if (error instanceof EngineError && error.code !== 'internal' && !(error instanceof KernelFault)) return error;
    for (const device of this.all) {
      const reason = await device.whyLost();
      if (reason !== undefined)
        return new EngineError('device_lost', `${device.info.name} was lost at the loading of the models: ${reason}`, { cause: error });
    }
    return error;
  }

  async endCompiling(): Promise<void> {
    for (const device of this.all) await device.endParallelCompiling();
  }

  close(): void {
    for (const device of this.all) device.close();
  }
}

function reportKernels(avoided: ReadonlyMap<Replaceable, string>, tested: number, tuned: readonly TunedKernel[]): KernelReport {
  const replaced = [...avoided].map(([kernel, why]) => ({ kernel, by: REPLACEABLE[kernel], why }));
  return { tested, replaced, ...(tuned.length > 0 && { tuned }) };
}

interface Tasks {
  readonly chat: ChatEngine | undefined;
  readonly speech: Synthesizer | undefined;
  readonly transcription: Transcriber | undefined;
}

class LocalEngine implements Omit<Engine, OperationName>, TaskOperations<undefined> {
  readonly #devices: TaskDevices;
  readonly #tasks: Tasks;
  readonly #memory: readonly MemoryPlan[];
  readonly #kernels: KernelReport;
  #state: EngineStatus['state'] = 'ready';

  constructor(devices: TaskDevices, tasks: Tasks, memory: readonly MemoryPlan[], kernels: KernelReport) {
    this.#devices = devices;
    this.#tasks = tasks;
    this.#memory = memory;
    this.#kernels = kernels;
    // Tasks share one fate: when one of several devices is lost, the whole engine is rebuilt.
    for (const { lost, info, platform } of devices.all) {
      void lost.then((reason) => this.#lose(platform, `${info.name}: ${reason}`));
    }
    for (const task of [tasks.chat, tasks.speech, tasks.transcription])
      void task?.lost.then((reason) => this.#lose(devices.get(task.info.task)!.platform, reason));
  }

  #lose(platform: Platform, reason: string): void {
    if (this.#state === 'closing') return;
    this.#state = 'lost';
    platform.log(`engine lost: ${reason}`);
  }

  info(): EngineInfo {
    const { info: adapter } = this.#main;
    const models = [this.#tasks.chat, this.#tasks.speech, this.#tasks.transcription].flatMap((task) => {
      const info = task?.info;
      if (!info) return [];
      const own = this.#devices.get(info.task)!.info;
      return own === adapter ? [info] : [{ ...info, adapter: own }];
    });
    return { adapter, models, memory: this.#memory, kernels: this.#kernels };
  }

  /** The chat model's device, else the first that was opened. */
  get #main(): Device {
    return this.#devices.get('chat') ?? this.#devices.all[0]!;
  }

  status(): EngineStatus {
    const stats = this.#devices.all.map((device) => device.stats);
    const sum = (key: 'buffers' | 'bufferBytes' | 'dispatches' | 'submits' | 'bytesRead'): number =>
      [...stats, ...(this.#tasks.chat?.deviceStats ?? [])].reduce((total, one) => total + one[key], 0);
    const pending = stats.filter((one) => one.pending > 0);
    // A working device must not hide a hung one: of the devices with pending work, the one that has waited longest counts.
    const lastProgress =
      pending.length > 0 ? Math.min(...pending.map((one) => one.lastProgress)) : Math.max(...stats.map((one) => one.lastProgress));
    return {
      state: this.#state,
      lastProgress,
      pending: pending.length > 0,
      ...(this.#tasks.chat?.status() ?? EMPTY_CHAT_STATUS),
      gpuBuffers: sum('buffers'),
      gpuBytes: sum('bufferBytes'),
      dispatches: sum('dispatches'),
      submits: sum('submits'),
      bytesRead: sum('bytesRead'),
    };
  }

  /** Binds each operation of the protocol to the method of that name, on the operation's task or, if it has none, on this engine. */
  operations(): Operations {
    type Methods = Record<string, (...args: unknown[]) => unknown>;
    return operations((name, { kind, task }) => {
      // Looked up now: the operation is later assigned over the method of the same name.
      const own = (this as unknown as Methods)[name]?.bind(this);
      const call = (...args: unknown[]): unknown => {
        if (!task) return own!(...args);
        return (this.#loaded(this.#tasks[task], task) as unknown as Methods)[name]!(...args);
      };
      return kind === 'value' ? async (request) => call(request) : call;
    });
  }

  #loaded<T>(task: T | undefined, name: string): T {
    if (this.#state === 'lost') throw new EngineError('device_lost', 'the GPU device was lost; the engine has to be started again');
    if (this.#state === 'closing') throw engineClosing();
    if (!task) throw new EngineError('unsupported', `no ${name} model is loaded`);
    return task;
  }

  async profile(enable: boolean): Promise<readonly ProfileEntry[]> {
    const { profiler } = this.#main;
    const entries = profiler.enabled ? await profiler.report() : [];
    if (enable && !profiler.enable(true)) throw new EngineError('unsupported', 'this adapter has no timestamp queries');
    if (!enable) profiler.enable(false);
    return entries;
  }

  async close(): Promise<void> {
    this.#state = 'closing';
    for (const task of [this.#tasks.chat, this.#tasks.speech, this.#tasks.transcription]) await task?.close();
    this.#devices.close();
  }
}
