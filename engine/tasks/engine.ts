/** Puts the three tasks on one device and answers for their common state. */
import type {
  AdapterInfo, ChatEvent, ChatRequest, Engine, EngineInfo, EngineStatus, ModelInfo, ProfileEntry, SpeechEvent, SpeechRequest, TokenizeRequest, TranscriptionEvent, TranscriptionRequest,
} from '../api.ts'; // prettier-ignore
import type { EngineConfig } from '../config.ts';
import { EngineError } from '../errors.ts';
import { Device } from '../gpu/device.ts';
import type { Platform } from '../platform/platform.ts';
import { ChatEngine } from './chat-engine.ts';
import { Synthesizer } from './synthesizer.ts';
import { Transcriber } from './transcriber.ts';

/** Loads every model the configuration names, one after the other, and warms its kernels up. */
export async function createEngine(platform: Platform, config: EngineConfig): Promise<Engine> {
  const device = await Device.create(platform, config.adapter === undefined ? {} : { name: config.adapter });
  try {
    const transcription = config.transcription && (await Transcriber.load(device, platform, config.transcription, config));
    const speech = config.speech && (await Synthesizer.load(device, platform, config.speech, config));
    // Chat comes last: its KV pages take what the others leave of the memory budget.
    const chat = config.chat && (await ChatEngine.load(device, platform, config.chat, config));
    return new LocalEngine(device, chat, speech, transcription);
  } catch (error) {
    device.close();
    throw error;
  }
}

class LocalEngine implements Engine {
  readonly #device: Device;
  readonly #chat: ChatEngine | undefined;
  readonly #speech: Synthesizer | undefined;
  readonly #transcription: Transcriber | undefined;
  #state: EngineStatus['state'] = 'ready';

  constructor(device: Device, chat: ChatEngine | undefined, speech: Synthesizer | undefined, transcription: Transcriber | undefined) {
    this.#device = device;
    this.#chat = chat;
    this.#speech = speech;
    this.#transcription = transcription;
    void device.lost.then((reason) => {
      if (this.#state === 'closing') return;
      this.#state = 'lost';
      device.platform.log(`GPU device lost: ${reason}`);
    });
  }

  info(): EngineInfo {
    const models = [this.#chat?.info, this.#speech?.info, this.#transcription?.info].filter(
      (info): info is ModelInfo => info !== undefined,
    );
    const adapter: AdapterInfo = this.#device.info;
    return { adapter, models };
  }

  status(): EngineStatus {
    const { stats } = this.#device;
    const chat = this.#chat?.status();
    return {
      state: this.#state,
      lastProgress: stats.lastProgress,
      pending: stats.pending > 0,
      running: chat?.running ?? 0,
      waiting: chat?.waiting ?? 0,
      gpuBuffers: stats.buffers,
      gpuBytes: stats.bufferBytes,
      dispatches: stats.dispatches,
      submits: stats.submits,
      bytesRead: stats.bytesRead,
      kvPagesTotal: chat?.kvPagesTotal ?? 0,
      kvPagesUsed: chat?.kvPagesUsed ?? 0,
      promptTokens: chat?.promptTokens ?? 0,
      generatedTokens: chat?.generatedTokens ?? 0,
      cachedTokens: chat?.cachedTokens ?? 0,
      draftedTokens: chat?.draftedTokens ?? 0,
      acceptedTokens: chat?.acceptedTokens ?? 0,
    };
  }

  chat(request: ChatRequest, signal: AbortSignal): AsyncIterable<ChatEvent> {
    return this.#loaded(this.#chat, 'chat').generate(request, signal);
  }

  synthesize(request: SpeechRequest, signal: AbortSignal): AsyncIterable<SpeechEvent> {
    return this.#loaded(this.#speech, 'speech').synthesize(request, signal);
  }

  transcribe(request: TranscriptionRequest, signal: AbortSignal): AsyncIterable<TranscriptionEvent> {
    return this.#loaded(this.#transcription, 'transcription').transcribe(request, signal);
  }

  async tokenize(request: TokenizeRequest): Promise<readonly number[]> {
    return this.#loaded(this.#chat, 'chat').tokenize(request);
  }

  async detokenize(tokens: readonly number[]): Promise<string> {
    return this.#loaded(this.#chat, 'chat').detokenize(tokens);
  }

  async flushCache(): Promise<void> {
    this.#loaded(this.#chat, 'chat').flushCache();
  }

  #loaded<T>(task: T | undefined, name: string): T {
    if (this.#state === 'lost') throw new EngineError('device_lost', 'the GPU device was lost; the engine is being rebuilt');
    if (this.#state === 'closing') throw new EngineError('shutting_down', 'the engine is closing');
    if (!task) throw new EngineError('unsupported', `no ${name} model is loaded`);
    return task;
  }

  async profile(enable: boolean): Promise<readonly ProfileEntry[]> {
    const { profiler } = this.#device;
    const entries = profiler.enabled ? await profiler.report() : [];
    if (enable && !profiler.enable(true)) throw new EngineError('unsupported', 'this adapter has no timestamp queries');
    if (!enable) profiler.enable(false);
    return entries;
  }

  async close(): Promise<void> {
    this.#state = 'closing';
    await this.#chat?.close();
    await this.#speech?.close();
    await this.#transcription?.close();
    this.#device.close();
  }
}
