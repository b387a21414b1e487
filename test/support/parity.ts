/** What the three tasks compute on a device, number by number; the tab and Node are compared by it (test/everywhere/parity.test.ts). */
import { floatStorage, resolveConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { createEncoderWorkspace } from '../../engine/models/whisper/encoder.ts';
import { loadWhisperModel } from '../../engine/models/whisper/load.ts';
import { logMel, melInput } from '../../engine/ops/spectral.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { Synthesizer } from '../../engine/tasks/synthesizer.ts';
import { Transcriber } from '../../engine/tasks/transcriber.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';

export interface ParityResult {
  /** Labels of every pipeline that was compiled, sorted: which kernels were taken, in which variants. */
  readonly kernels: readonly string[];
  /** Greedy answers, token by token with log-probabilities. */
  readonly answers: readonly (readonly { readonly token: string; readonly logprob: number }[])[];
  /** [frames, mels] of the clip, padded to a window. */
  readonly mel: readonly number[];
  readonly transcript: readonly {
    readonly text: string;
    readonly tokens: readonly number[];
    readonly start: number;
    readonly end: number;
  }[];
  /** Samples of a seeded sentence. */
  readonly audio: readonly number[];
}

const QUESTIONS = [
  'What is the capital of France?',
  'Tell me a short story about a fox.',
  'Hello!',
  'What can you do?',
  'How many days are in a week?',
];
const SENTENCE = { text: 'Good morning.', voice: 'oni', seed: 7 };
/** As a tab has it; several conversations run as one batch. */
const CONFIG = { maxRunningRequests: 8, contextLength: 2048, chunkedPrefillSize: 512, deviceMemory: 2 ** 30 };

/** Runs chat, transcription and speech with the bundled checkpoints; `models` is their folder or URL, `clip` a WAV file. */
export async function measureParity(device: Device, models: string, clip: Uint8Array): Promise<ParityResult> {
  const kernels = notePipelines(device);
  const answers = await chat(device, models);
  const samples = wavToMono(parseWav(clip));
  const mel = await melOf(device, `${models}/parley-transcribe`, samples);
  const transcript = await transcribe(device, models, samples);
  const audio = await speak(device, models);
  return { kernels: [...kernels].sort(), answers, mel, transcript, audio };
}

/** Collects the labels of the pipelines that `device` compiles from now on. */
function notePipelines({ gpu }: Device): Set<string> {
  const labels = new Set<string>();
  const compile = gpu.createComputePipelineAsync.bind(gpu);
  const compileNow = gpu.createComputePipeline.bind(gpu);
  gpu.createComputePipelineAsync = (descriptor) => {
    labels.add(descriptor.label ?? '');
    return compile(descriptor);
  };
  gpu.createComputePipeline = (descriptor) => {
    labels.add(descriptor.label ?? '');
    return compileNow(descriptor);
  };
  return labels;
}

async function chat(device: Device, models: string): Promise<ParityResult['answers']> {
  const source = { path: `${models}/parley-chat`, id: 'chat' };
  const engine = await ChatEngine.load(device, device.platform, source, resolveConfig({ ...CONFIG, chat: source }));
  const ask = async (question: string): Promise<ParityResult['answers'][number]> => {
    const request = { messages: [{ role: 'user', content: question }], sampling: { temperature: 0 }, maxTokens: 24, logprobs: 0 } as const;
    const tokens: { token: string; logprob: number }[] = [];
    for await (const event of engine.chat(request, new AbortController().signal)) {
      if (event.type === 'delta') for (const { token, logprob } of event.logprobs ?? []) tokens.push({ token, logprob });
    }
    return tokens;
  };
  const answers = await Promise.all(QUESTIONS.map(ask));
  await engine.close();
  return answers;
}

async function melOf(device: Device, folder: string, samples: Float32Array): Promise<readonly number[]> {
  const { config, logMel: mel } = await loadWhisperModel(device, await openModelFolder(device.platform, folder), floatStorage('f16'));
  const { frames } = config;
  const workspace = createEncoderWorkspace(device, config);
  device.write(workspace.samples, melInput(config.mel, samples, frames * config.mel.hop));
  const rec = device.record('mel');
  logMel(rec, { logMel: mel, workspace: workspace.mel, samples: workspace.samples, out: workspace.features, frames });
  rec.submit();
  return [...(await device.read(workspace.features))];
}

async function transcribe(device: Device, models: string, samples: Float32Array): Promise<ParityResult['transcript']> {
  const source = { path: `${models}/parley-transcribe`, id: 'transcription' };
  const config = resolveConfig({ ...CONFIG, transcription: source });
  const transcriber = await Transcriber.load(device, device.platform, source, config);
  const segments: ParityResult['transcript'][number][] = [];
  for await (const event of transcriber.transcribe({ samples, timestamps: 'segment' }, new AbortController().signal)) {
    if (event.type !== 'segment') continue;
    const { text, tokens, start, end } = event.segment;
    segments.push({ text, tokens, start, end });
  }
  await transcriber.close();
  return segments;
}

async function speak(device: Device, models: string): Promise<readonly number[]> {
  const source = { path: `${models}/parley-speech`, id: 'speech' };
  const synthesizer = await Synthesizer.load(device, device.platform, source, resolveConfig({ ...CONFIG, speech: source }));
  const audio: number[] = [];
  for await (const event of synthesizer.synthesize(SENTENCE, new AbortController().signal)) {
    if (event.type === 'audio') audio.push(...event.samples);
  }
  await synthesizer.close();
  return audio;
}
