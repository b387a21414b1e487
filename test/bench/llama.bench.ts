/**
 * Parley beside llama.cpp on the same adapter and the same GGUF files: seconds until a prompt can come, host memory, bytes on the device, tokens a second of
 * a prompt and of decoding. Each runs in a process of its own; llama.cpp's Vulkan backend without f16 arithmetic, which a software adapter emulates, and its CPU
 * backend as a line to compare with. `npm run bench -- llama [FILE.gguf ...] [--shape 0.5b|8b] [--kinds F16,Q8_0,Q4_K] [--prompt N] [--answer N]
 * [--without CONTENDER]`; without files, a model of that shape whose weights mean nothing. Minutes, so only by name. llama.cpp is no dependency, because of
 * its size; in any folder outside the repository:
 *
 *   npm install --ignore-scripts --omit=optional node-llama-cpp@3.22.1 @node-llama-cpp/linux-x64@3.22.1 @node-llama-cpp/linux-x64-vulkan@3.22.1
 *
 * and PARLEY_LLAMA_CPP names that folder.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { resolveConfig } from '../../engine/config.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { createRng } from '../../engine/util/rng.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { writeLlamaGguf } from '../support/llama-gguf.ts';
import { benchDevice, fixed, loadText, printMachine, printTable } from './harness.ts';

const SHAPES = {
  '0.5b': { hidden: 1024, intermediate: 4096, layers: 22, heads: 16, kvHeads: 4, headDim: 64, vocabulary: 65536, maxPositions: 2048 },
  '8b': { hidden: 4096, intermediate: 14336, layers: 32, heads: 32, kvHeads: 8, headDim: 128, vocabulary: 128256, maxPositions: 2048 },
} as const;
const CONTENDERS = { parley: 'Parley', vulkan: 'llama.cpp, Vulkan', cpu: 'llama.cpp, CPU' } as const;
type Contender = keyof typeof CONTENDERS;

/** Begins the line that a process prints at last. */
const MEASURED = 'measured: ';

const CONTEXT = 1024;
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    shape: { type: 'string', default: '0.5b' },
    kinds: { type: 'string', default: 'F16,Q8_0,Q4_K' },
    prompt: { type: 'string', default: '128' },
    answer: { type: 'string', default: '16' },
    without: { type: 'string', multiple: true, default: [] },
    measure: { type: 'string' },
  },
});
const PROMPT = Number(options.prompt);
const ANSWER = Number(options.answer);
/** Of each prompt, after one that compiles what is compiled late; the median counts. Slow contenders get as many as this time, in seconds, allows, at least one. */
const ROUNDS = 3;
const BUDGET = 60;

/** What a process measured. */
interface Measured {
  readonly ready: number;
  /** Of the process above what it had before, less the device's bytes where these are host memory. */
  readonly hostPeak: number;
  readonly deviceBytes: number;
  readonly prefill: number;
  readonly decode: number;
  /** Processor seconds a token. */
  readonly cpu: number;
  readonly answer: string;
}

/** A loaded model: pieces of a greedy answer as they come. */
interface Running {
  readonly deviceBytes: number;
  generate(prompt: readonly number[]): AsyncIterable<Piece>;
}

interface Piece {
  readonly text: string;
  readonly tokens: number;
}

/** What is used of node-llama-cpp. */
interface LlamaCpp {
  getLlama(options: object): Promise<{
    loadModel(options: object): Promise<{
      readonly memoryUsage: { readonly ram: number; readonly vram: number };
      detokenize(tokens: readonly number[]): string;
      createContext(options: object): Promise<{
        readonly memoryUsage: { readonly ram: number; readonly vram: number };
        getSequence(): { clearHistory(): Promise<void>; evaluate(tokens: readonly number[], options: object): AsyncIterable<number> };
      }>;
    }>;
  }>;
}

async function openParley(path: string): Promise<Running> {
  const device = await benchDevice('default');
  const config = resolveConfig({ contextLength: CONTEXT, maxRunningRequests: 1, disableRadixCache: true });
  const engine = await ChatEngine.load(device, createNodePlatform({ log: () => undefined }), { path }, config);
  return {
    get deviceBytes() {
      return device.stats.bufferBytes;
    },
    async *generate(prompt) {
      const request = { messages: [], prompt, maxTokens: ANSWER, ignoreEos: true, skipSpecialTokens: false, sampling: { temperature: 0 } };
      for await (const event of engine.chat(request, new AbortController().signal)) if (event.type === 'delta') yield event;
    },
  };
}

async function openLlama(path: string, gpu: false | 'vulkan'): Promise<Running> {
  const index = join(process.env['PARLEY_LLAMA_CPP']!, 'node_modules', 'node-llama-cpp', 'dist', 'index.js');
  const { getLlama } = (await import(pathToFileURL(index).href)) as LlamaCpp;
  const llama = await getLlama({ gpu, build: 'never', logLevel: 'error', skipDownload: true, progressLogs: false });
  const model = await llama.loadModel({ modelPath: path, gpuLayers: gpu ? 'max' : 0 });
  // In a container it counts the machine's cores, and threads without one wait for each other.
  const context = await model.createContext({ contextSize: CONTEXT, sequences: 1, batchSize: PROMPT, threads: availableParallelism() });
  const sequence = context.getSequence();
  return {
    deviceBytes: model.memoryUsage.vram + context.memoryUsage.vram,
    async *generate(prompt) {
      await sequence.clearHistory();
      let count = 0;
      for await (const token of sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
        yield { text: model.detokenize([token]), tokens: 1 };
        if (++count === ANSWER) return;
      }
    },
  };
}

/** Everything that is measured of one contender, in this process. */
async function measure(contender: Contender, path: string): Promise<Measured> {
  const before = process.memoryUsage.rss();
  let most = before;
  const timer = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 5);
  const started = performance.now();
  const running = contender === 'parley' ? await openParley(path) : await openLlama(path, contender === 'vulkan' && 'vulkan');
  const ready = (performance.now() - started) / 1000;
  clearInterval(timer);
  const { deviceBytes } = running;
  const prompt = await promptFor(path);
  const rounds: { prefill: number; decode: number; cpu: number }[] = [];
  let answer = '';
  let spent = 0;
  for (let round = 0; round <= ROUNDS && (round < 2 || spent < BUDGET); round++) {
    const pieces: (Piece & { readonly at: number })[] = [];
    const from = performance.now();
    const cpu = process.cpuUsage();
    for await (const piece of running.generate(prompt)) pieces.push({ ...piece, at: performance.now() });
    const { user, system } = process.cpuUsage(cpu);
    answer = pieces.map(({ text }) => text).join('');
    const [first, last] = [pieces[0]!, pieces.at(-1)!];
    const rates = { prefill: (1000 * PROMPT) / (first.at - from), decode: (1000 * (ANSWER - first.tokens)) / (last.at - first.at) };
    if (round > 0) rounds.push({ ...rates, cpu: (user + system) / 1e6 / (PROMPT + ANSWER) });
    if (round > 0) spent += (performance.now() - from) / 1000;
  }
  const median = (key: 'prefill' | 'decode' | 'cpu'): number =>
    rounds.map((round) => round[key]).sort((a, b) => a - b)[rounds.length >> 1]!;
  const hostPeak = most - before - deviceBytes;
  return { ready, hostPeak, deviceBytes, prefill: median('prefill'), decode: median('decode'), cpu: median('cpu'), answer };
}

/** Tokens of this repository's prose, or any where the model's tokens are no words. */
async function promptFor(path: string): Promise<readonly number[]> {
  const tokenizer = await Tokenizer.load(await openModelFolder(createNodePlatform({ log: () => undefined }), path));
  const prose = readFileSync(new URL('../../docs/memory.md', import.meta.url), 'utf8');
  const tokens = tokenizer.encode(prose, { addSpecialTokens: true }).slice(0, PROMPT);
  const rng = createRng(1);
  return new Set(tokens).size > PROMPT / 4 ? tokens : Array.from({ length: PROMPT }, () => 300 + rng.integer(20000));
}

/** The same in a process of its own. */
async function inProcess(contender: Contender, path: string, software: boolean): Promise<Measured> {
  const env = { ...process.env, ...(software && { GGML_VK_DISABLE_F16: '1' }), GGML_VK_VISIBLE_DEVICES: '0' };
  // No channel to this process, and none of the arguments of the tsx command: node-llama-cpp tries its binary in a process that inherits both, and waits for ever.
  const args = [
    '--import',
    import.meta.resolve('tsx'),
    fileURLToPath(import.meta.url),
    '--measure',
    contender,
    '--prompt',
    options.prompt,
    '--answer',
    options.answer,
    path,
  ];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) out += chunk;
  const line = out.split('\n').find((one) => one.startsWith(MEASURED));
  if (line === undefined) throw new Error(`${CONTENDERS[contender]} ended without a word on ${path}`);
  return JSON.parse(line.slice(MEASURED.length)) as Measured;
}

/** Prints a file's table. */
async function compare(path: string, software: boolean): Promise<void> {
  const rows: string[][] = [];
  let theirs: string | undefined;
  const asked = (Object.keys(CONTENDERS) as Contender[]).filter((contender) => !options.without.includes(contender));
  for (const contender of asked) {
    const { ready, hostPeak, deviceBytes, prefill, decode, cpu, answer } = await inProcess(contender, path, software);
    console.error(`${basename(path)}, ${CONTENDERS[contender]}: ${fixed(prefill, 1)} and ${fixed(decode, 1)} tokens a second`);
    theirs ??= answer;
    const same = [...answer].findIndex((letter, i) => letter !== theirs![i]);
    const mib = (bytes: number): string => fixed(bytes / 2 ** 20, 0);
    rows.push([CONTENDERS[contender], fixed(ready, 1), mib(hostPeak), mib(deviceBytes), fixed(prefill, 1), fixed(decode, 1), fixed(cpu * 1000, 0), same < 0 ? 'all' : String(same), loadText()]); // prettier-ignore
  }
  console.log(
    `\n${basename(path)}: ${fixed(statSync(path).size / 2 ** 20, 0)} MiB; a prompt of ${PROMPT} tokens, ${ANSWER} greedy ones after it\n`,
  );
  printTable(
    [
      '',
      's to ready',
      'host peak MiB',
      'device MiB',
      'prompt tokens/s',
      'decoded tokens/s',
      'CPU ms a token',
      "letters as Parley's",
      'load',
    ],
    rows,
  );
}

if (options.measure !== undefined) {
  const line = JSON.stringify(await measure(options.measure as Contender, positionals[0]!));
  process.stdout.write(`${MEASURED}${line}\n`, () => process.exit(0));
} else {
  const files = positionals.map((file) => resolve(file));
  if (!existsSync(join(process.env['PARLEY_LLAMA_CPP'] ?? '', 'node_modules', 'node-llama-cpp'))) {
    console.error('PARLEY_LLAMA_CPP names no folder with node-llama-cpp; test/bench/llama.bench.ts says how to install it');
    process.exit(2);
  }
  const device = await benchDevice('default');
  const { software } = device.caps;
  printMachine(device);
  device.close();
  for (const file of files) await compare(file, software);
  const folder = mkdtempSync(join(tmpdir(), 'llama-'));
  if (files.length === 0) {
    for (const kind of options.kinds.split(',')) {
      const path = join(folder, `${options.shape}-${kind}.gguf`);
      writeLlamaGguf(path, SHAPES[options.shape as keyof typeof SHAPES], kind);
      await compare(path, software);
      rmSync(path);
    }
  }
  rmSync(folder, { recursive: true });
  process.exit(0);
}
