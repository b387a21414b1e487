/** `parley run MODEL "prompt"`: one answer of a chat model on the terminal, or a conversation, without a server. */
import { createInterface } from 'node:readline/promises';
import { text as readAll } from 'node:stream/consumers';
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { ChatMessage, ChatRequest } from '../../engine/index.ts';
import { EngineError, resolveConfig } from '../../engine/index.ts';
import { SAMPLING } from '../../engine/sampling.ts';
import { resolveSource } from '../../sources/node/index.ts';
import { superviseEngine } from '../engine/supervisor.ts';
import type { EngineSupervisor } from '../engine/supervisor.ts';
import { createLog } from '../log.ts';
import { inFlags } from '../settings/remedies.ts';
import { pulling } from '../settings/pulling.ts';
import { recommendedSampling } from '../settings/sources.ts';
import { usage } from './models.ts';

const HELP = `Usage: parley run MODEL ["prompt"] [options]

MODEL is a folder, a file, or whatever 'parley pull --help' lists. The prompt may also come through a pipe; with neither, a
conversation begins, which an empty line or Ctrl-D ends. The answer goes to stdout, everything else to stderr.

  --system TEXT          what the model is told first
  --max-tokens N         where the answer ends at the latest
  --temperature NUMBER   0 always takes the likeliest token; default: the model's
  --seed N               the same seed gives the same answer
  --adapter NAME         part of the GPU's name; 'parley adapters' lists them
  --context-length N     tokens of prompt and answers together; default 4096`;

const OPTIONS = {
  system: { type: 'string' },
  'max-tokens': { type: 'string' },
  temperature: { type: 'string' },
  seed: { type: 'string' },
  adapter: { type: 'string' },
  'context-length': { type: 'string', default: '4096' },
} as const;

/** What was wrong with the command line. */
class UsageError extends Error {}

interface RunCall {
  readonly model: string;
  readonly prompt: string | undefined;
  readonly system: string | undefined;
  readonly adapter: string | undefined;
  readonly contextLength: number;
  readonly request: Pick<ChatRequest, 'sampling' | 'maxTokens'>;
}

/** Answers on stdout; exits with 2 for what the person must mend, 1 where the engine failed, 130 after Ctrl-C. */
export async function runPrompt(argv: readonly string[]): Promise<void> {
  if (argv.length === 0 || argv.includes('--help') || argv.includes('-h')) return usage(argv, HELP);
  try {
    const call = parseCall(argv);
    const path = await pulling(async (options) => {
      if (existsSync(call.model) && !call.model.endsWith('.json')) return call.model;
      return (await resolveSource(call.model, options)).path;
    });
    await answer(call, path);
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof EngineError)) throw error;
    process.stderr.write(
      `${error instanceof EngineError ? inFlags(error) : `${error.message}; 'parley run --help' lists what there is`}\n`,
    );
    process.exitCode = error instanceof EngineError && !REFUSALS.has(error.code) ? 1 : 2;
  }
}

/** What the same command would meet again. */
const REFUSALS: ReadonlySet<string> = new Set(['invalid_model', 'unsupported', 'invalid_request', 'context_length_exceeded', 'no_adapter']);

function parseCall(argv: readonly string[]): RunCall {
  let parsed;
  try {
    parsed = parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new UsageError((error as Error).message.split('. ')[0]);
  }
  const { values, positionals } = parsed;
  const [model, prompt, ...more] = positionals;
  if (model === undefined) throw new UsageError('no model is named');
  if (more.length > 0) throw new UsageError(`${positionals.length - 1} prompts are given; put one into quotation marks`);
  const number = (name: keyof typeof OPTIONS, least: number, most: number, whole: boolean): number | undefined => {
    const given = values[name];
    if (given === undefined) return undefined;
    const value = Number(given);
    if (given.trim() !== '' && value >= least && value <= most && (!whole || Number.isSafeInteger(value))) return value;
    throw new UsageError(`--${name} ${given}: expected a${whole ? ' whole' : ''} number from ${least} to ${most}`);
  };
  const temperature = number('temperature', SAMPLING.temperature.min, SAMPLING.temperature.max, false);
  const seed = number('seed', 0, Number.MAX_SAFE_INTEGER, true);
  const maxTokens = number('max-tokens', 1, 2 ** 20, true);
  return {
    model,
    prompt,
    system: values.system,
    adapter: values.adapter,
    contextLength: number('context-length', 16, 2 ** 20, true)!,
    request: {
      sampling: { ...(temperature !== undefined && { temperature }), ...(seed !== undefined && { seed }) },
      ...(maxTokens !== undefined && { maxTokens }),
    },
  };
}

async function answer(call: RunCall, path: string): Promise<void> {
  const prompt = call.prompt ?? (process.stdin.isTTY ? undefined : (await readAll(process.stdin)).trimEnd());
  if (prompt === '') throw new UsageError('the prompt is empty');
  const engine = await startEngine(call, path);
  const messages: ChatMessage[] = call.system === undefined ? [] : [{ role: 'system', content: call.system }];
  try {
    if (prompt !== undefined) await turn(engine, messages, prompt, call);
    else await converse(engine, messages, call);
  } finally {
    await engine.close();
  }
}

/** The engine in a process of its own, as for the server: what drivers print, and a crash of one, stay there. */
async function startEngine({ model, adapter, contextLength }: RunCall, path: string): Promise<EngineSupervisor> {
  const sampling = recommendedSampling(model);
  const chat = { path, ...(sampling && { sampling }) };
  const config = resolveConfig({ chat, contextLength, maxRunningRequests: 1, ...(adapter !== undefined && { adapter }) });
  let giveUp = (_error: EngineError): void => {};
  const failed = new Promise<never>((_resolve, reject) => (giveUp = reject));
  const engine = superviseEngine({ start: { config, toggles: 'default' }, log: createLog('silent'), onGiveUp: (error) => giveUp(error) });
  try {
    await Promise.race([engine.ready, failed]);
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}

async function converse(engine: EngineSupervisor, messages: ChatMessage[], call: RunCall): Promise<void> {
  const lines = createInterface({ input: process.stdin, output: process.stderr, prompt: '> ' });
  lines.prompt();
  for await (const line of lines) {
    if (line.trim() === '') break;
    await turn(engine, messages, line, call);
    lines.prompt();
  }
  lines.close();
}

/** One question with its answer, which both stay in `messages`. The first Ctrl-C ends the answer. */
async function turn(engine: EngineSupervisor, messages: ChatMessage[], prompt: string, { request }: RunCall): Promise<void> {
  messages.push({ role: 'user', content: prompt });
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  process.once('SIGINT', onSignal);
  const started = performance.now();
  let first = 0;
  let content = '';
  try {
    for await (const event of engine.chat({ ...request, messages }, stop.signal)) {
      if (event.type === 'delta') {
        first ||= performance.now();
        content += event.text;
        process.stdout.write(event.text);
      }
      if (event.type !== 'finish') continue;
      const seconds = (performance.now() - first) / 1000;
      const rate = event.completionTokens > 1 ? `, ${((event.completionTokens - 1) / seconds).toFixed(1)} tokens/s` : '';
      const end = event.reason === 'length' ? '; it ends at the number of tokens that was allowed' : '';
      process.stdout.write('\n');
      process.stderr.write(`(first token after ${((first - started) / 1000).toFixed(2)} s${rate}${end})\n`);
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    process.stdout.write('\n');
    process.exitCode = 130;
  } finally {
    process.off('SIGINT', onSignal);
  }
  messages.push({ role: 'assistant', content });
}
