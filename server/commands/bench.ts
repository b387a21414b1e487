/** `parley bench [MODEL]`: measures how fast a model is on this machine, compared with the adapter's speed, and which kernels take the time. */
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RANDOM_SHAPES, RANDOM_TYPES, describeModel, randomPath, resolveConfig, traceEvents } from '../../engine/index.ts';
import type { AdapterReport, ChatRequest, EngineConfig, ProfileEntry, RandomModel } from '../../engine/index.ts';
import { ENGINE_SETTINGS } from '../../engine/config.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { EngineSupervisor } from '../engine/supervisor.ts';
import { measureAdapter } from '../setup/adapters.ts';
import { BUNDLED as bundledFolder } from '../setup/layout.mjs';
import { UsageError, command, modelPath, numberOption, parseCommand, startChat } from './chat-command.ts';
import { usage } from './models.ts';
import { describe, kernelRows, percentiles, profile } from './bench-report.ts';
import type { ClientsRow, Report } from './bench-report.ts';
import { measureAudio } from './bench-audio.ts';

/** The bundled chat model, or a name that no source has if it is not installed. */
const BUNDLED = join(bundledFolder ?? '', 'models', 'parley-chat');

const { choices: MODES, default: USUAL_MODE } = ENGINE_SETTINGS.numerics;

const HELP = `Usage: parley bench [MODEL] [options]

Loads a model (the bundled chat model where none is named) and has several clients at once ask it. Of a chat model, for
answers of a fixed length to prompts that share nothing: tokens a second, times to the first token and between tokens (median
and 99th percentile), and what share that is of what the adapter reaches. Of a speech or a transcription model, how many times
as fast as real time. Then the kernels that take the most time, beside what they should take at best on this adapter.

MODEL is a folder, a file, or whatever 'parley pull --help' lists. With --random the model is a published shape with weights
that mean nothing, which the device makes in seconds: nothing is fetched.

  --prompt-tokens N      length of each prompt; default 512, or what the model's context holds
  --tokens N             length of each answer; default 64
  --clients N,N,...      how many ask at once, in turn; default 1,8,32
  --adapter NAME         part of the GPU's name; 'parley adapters' lists them
  --numerics MODE        ${MODES.join(' or ')}: whether prompts of a chat model take subgroup matrices (docs/numerics.md)
  --random SHAPE         ${Object.keys(RANDOM_SHAPES).join(', ')}
  --quantization TYPE    what its matrices are stored as: f16 (default), f32, bf16, q8_0, q4_k and all other blocks of GGUF
  --layers N             fewer layers than the shape has, where memory is short
  --seed N               other weights; default 1
  --json                 the same as JSON
  --trace FILE           every dispatch of one client's answer on a time line, for ui.perfetto.dev`;

const OPTIONS = {
  'prompt-tokens': { type: 'string', default: '512' },
  tokens: { type: 'string', default: '64' },
  clients: { type: 'string', default: '1,8,32' },
  adapter: { type: 'string' },
  numerics: { type: 'string', default: USUAL_MODE },
  json: { type: 'boolean', default: false },
  trace: { type: 'string' },
  random: { type: 'string' },
  quantization: { type: 'string' },
  layers: { type: 'string' },
  seed: { type: 'string' },
} as const;

const MOST_CLIENTS = 256;
/** Number of token ids that every chat model's vocabulary has. */
const FIRST_TOKENS = 64;

interface BenchCall {
  readonly model: string;
  /** Random weights to measure instead of `model`. */
  readonly random: RandomModel | undefined;
  readonly promptTokens: number;
  readonly tokens: number;
  readonly clients: readonly number[];
  readonly adapter: string | undefined;
  readonly numerics: EngineConfig['numerics'];
  readonly json: boolean;
  /** File to write the time line to. */
  readonly trace: string | undefined;
}

/** Measures a model and prints the figures; exits like `parley run`. */
export async function runBench(argv: readonly string[]): Promise<void> {
  if (argv.includes('--help') || argv.includes('-h')) return usage(argv, HELP);
  await command('bench', OPTIONS, async () => {
    const call = parseCall(argv);
    if (call.trace !== undefined) await requireWritable(call.trace);
    const path = call.random ? randomPath(call.random) : call.model === BUNDLED ? BUNDLED : await modelPath(call.model);
    const adapter = await measureAdapter(call.adapter);
    const { task } = await describeModel(createNodePlatform({ log: () => undefined }), { path }, resolveConfig({}));
    const report =
      task === 'chat' ? await measure(call, path, adapter) : await measureAudio(task, { ...call, path, reach: adapter, writeTrace });
    process.stdout.write(call.json ? `${JSON.stringify(report, undefined, 2)}\n` : describe(report));
  });
}

function parseCall(argv: readonly string[]): BenchCall {
  const { values, positionals } = parseCommand(argv, OPTIONS);
  if (positionals.length > 1) throw new UsageError(`${positionals.length} models are named; 'bench' takes one`);
  const numerics = MODES.find((mode) => mode === values.numerics);
  if (!numerics) throw new UsageError(`--numerics ${values.numerics}: expected ${MODES.join(' or ')}`);
  const clients = values.clients.split(',').map((part) => numberOption('clients', part, 1, MOST_CLIENTS));
  return {
    model: positionals[0] ?? BUNDLED,
    random: randomModel(values, positionals),
    promptTokens: numberOption('prompt-tokens', values['prompt-tokens'], 1, 2 ** 20),
    tokens: numberOption('tokens', values.tokens, 2, 2 ** 20),
    clients,
    adapter: values.adapter,
    numerics,
    json: values.json,
    trace: values.trace,
  };
}

/** Reads --random and the options that belong to it. */
function randomModel(
  {
    random,
    quantization,
    layers,
    seed,
  }: { readonly random?: string; readonly quantization?: string; readonly layers?: string; readonly seed?: string },
  positionals: readonly string[],
): RandomModel | undefined {
  if (random === undefined) {
    for (const [name, value] of Object.entries({ quantization, layers, seed }))
      if (value !== undefined) throw new UsageError(`--${name} goes with --random`);
    return undefined;
  }
  if (positionals.length > 0) throw new UsageError(`--random and ${positionals[0]}: 'bench' takes one model`);
  const shape = Object.hasOwn(RANDOM_SHAPES, random) ? RANDOM_SHAPES[random] : undefined;
  if (!shape) throw new UsageError(`--random ${random}: expected one of ${Object.keys(RANDOM_SHAPES).join(', ')}`);
  const type = (quantization ?? 'f16').toLowerCase();
  if (!RANDOM_TYPES.has(type))
    throw new UsageError(`--quantization ${quantization}: expected one of ${[...RANDOM_TYPES.keys()].join(', ')}`);
  return {
    shape: random,
    type,
    layers: layers === undefined ? undefined : numberOption('layers', layers, 1, shape.num_hidden_layers),
    seed: numberOption('seed', seed ?? '1', 0, 2 ** 32 - 1),
  };
}

async function measure(call: BenchCall, path: string, adapter: AdapterReport | { readonly problem: string }): Promise<Report> {
  const { tokens, clients } = call;
  const started = performance.now();
  const { adapter: named, numerics } = call;
  const settings = { adapter: named, numerics, contextLength: call.promptTokens + tokens, maxRunningRequests: Math.max(...clients) };
  const engine = await startChat(call.model, path, settings);
  try {
    const secondsToReady = (performance.now() - started) / 1000;
    const { id, architecture, parameters, weightBytes, format, contextLength = tokens, numerics: had } = engine.info().models[0]!;
    const promptTokens = Math.min(call.promptTokens, contextLength - tokens);
    if (promptTokens < 1)
      throw new UsageError(`--tokens ${tokens}: ${id} has a context of ${contextLength} tokens, prompt and answer together`);
    const ask = asker(engine, await words(engine, promptTokens), tokens);
    await ask(1);
    const rows: ClientsRow[] = [];
    for (const count of clients) rows.push(await ask(count));
    const profiled = await profile(engine, () => ask(1));
    if (call.trace !== undefined) await writeTrace(call.trace, engine.info().adapter.name, profiled);
    const kernels = profiled && kernelRows(profiled, 'speed' in adapter ? adapter.speed : undefined, promptTokens + tokens / 2);
    const alone = rows.find((row) => row.clients === 1);
    const shares = alone && 'speed' in adapter && {
      weights: (alone.decode * weightBytes) / (adapter.speed.gigabytesPerSecond * 1e9),
      arithmetic: (2 * parameters * alone.prefill) / (adapter.speed.gigaflops * 1e9),
    }; // prettier-ignore
    return {
      date: new Date().toISOString(),
      model: {
        id,
        task: 'chat',
        architecture,
        parameters,
        weightBytes,
        ...(format !== undefined && { format }),
        ...(had !== undefined && numerics !== USUAL_MODE && { numerics: had }),
      },
      adapter,
      secondsToReady,
      promptTokens,
      tokens,
      rows,
      ...(kernels && { kernels }),
      ...(shares && { shares }),
    };
  } finally {
    await engine.close();
  }
}

/** Returns `count` tokens of plain text, or of the first ids if the vocabulary cannot spell it, as with random weights. */
async function words(engine: EngineSupervisor, count: number): Promise<readonly number[]> {
  const sentence = 'The harbour was quiet that morning, and nobody on the quay had yet heard of the letter. ';
  const tokens = await engine.tokenize({ prompt: sentence.repeat(Math.ceil(count / 8)) });
  return Array.from({ length: count }, (_, i) => tokens[i % tokens.length] ?? i % FIRST_TOKENS);
}

/** Returns a function that measures `clients` concurrent requests. */
function asker(engine: EngineSupervisor, prompt: readonly number[], maxTokens: number): (clients: number) => Promise<ClientsRow> {
  let asked = 0;
  const request = (): ChatRequest => ({
    messages: [], prompt, maxTokens, ignoreEos: true, skipSpecialTokens: false, sampling: { temperature: 0 },
    // So that no request finds another's prompt in the cache.
    cacheSalt: `bench ${asked++}`,
  }); // prettier-ignore
  /** Runs one request; returns the time at which each token arrived. */
  const one = async (): Promise<number[]> => {
    const times: number[] = [];
    for await (const event of engine.chat(request(), new AbortController().signal)) {
      if (event.type === 'delta') for (let i = 0; i < event.tokens; i++) times.push(performance.now());
    }
    return times;
  };
  return async (clients) => {
    const started = performance.now();
    const all = await Promise.all(Array.from({ length: clients }, one));
    const firsts = all.map((times) => times[0]! - started);
    const begun = started + Math.max(...firsts);
    const ended = Math.min(...all.map((times) => times.at(-1)!));
    const between = all.flatMap((times) => times.slice(1).map((time, i) => time - times[i]!));
    // If the first answer ended before the last one began, all of the time counts.
    const [from, to] = begun < ended ? [begun, ended] : [started, Math.max(...all.map((times) => times.at(-1)!))];
    const decoded = all.flat().filter((time) => time > from && time <= to).length;
    return {
      clients,
      prefill: (1000 * clients * prompt.length) / Math.max(...firsts),
      decode: (1000 * decoded) / (to - from),
      firstToken: percentiles(firsts),
      betweenTokens: percentiles(between),
    };
  };
}

/** Checks that the time line can be written, before minutes of measuring. */
async function requireWritable(file: string): Promise<void> {
  try {
    await (await open(file, 'a')).close();
  } catch (error) {
    throw new UsageError(`--trace ${file}: it cannot be written (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** Writes the time line of a profile; throws UsageError if the adapter has no timestamps. */
async function writeTrace(file: string, adapter: string, kernels: readonly ProfileEntry[] | undefined): Promise<void> {
  if (!kernels) throw new UsageError(`--trace: ${adapter} cannot tell the time of its kernels`);
  await writeFile(file, JSON.stringify(traceEvents(adapter, kernels)));
}
