/** `parley run MODEL "prompt"`: prints one answer of a chat model, or converses, on the terminal, without a server. */
import { createInterface } from 'node:readline/promises';
import type { Interface } from 'node:readline/promises';
import type { ReadLineOptions } from 'node:readline';
import { text as readAll } from 'node:stream/consumers';
import type { ChatMessage, ChatRequest } from '../../engine/index.ts';
import { SAMPLING } from '../../engine/sampling.ts';
import type { EngineSupervisor } from '../engine/supervisor.ts';
import { UsageError, command, modelPath, numberOption, parseCommand, startChat } from './chat-command.ts';
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

interface RunCall {
  readonly model: string;
  readonly prompt: string | undefined;
  readonly system: string | undefined;
  readonly adapter: string | undefined;
  readonly contextLength: number;
  readonly request: Pick<ChatRequest, 'sampling' | 'maxTokens'>;
}

/** Prints the answers on stdout; exits with 130 after Ctrl-C. */
export async function runPrompt(argv: readonly string[]): Promise<void> {
  if (argv.length === 0 || argv.includes('--help') || argv.includes('-h')) return usage(argv, HELP);
  await command('run', OPTIONS, async () => {
    const call = parseCall(argv);
    await answer(call, await modelPath(call.model));
  });
}

function parseCall(argv: readonly string[]): RunCall {
  const { values, positionals } = parseCommand(argv, OPTIONS);
  const [model, prompt, ...more] = positionals;
  if (model === undefined) throw new UsageError('no model is named');
  if (more.length > 0) throw new UsageError(`${positionals.length - 1} prompts are given; put one into quotation marks`);
  const number = (name: keyof typeof OPTIONS, least: number, most: number, whole: boolean): number | undefined => {
    const given = values[name];
    return given === undefined ? undefined : numberOption(name, given, least, most, whole);
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
  const { model, adapter, contextLength } = call;
  const engine = await startChat(model, path, { adapter, contextLength, maxRunningRequests: 1 });
  const messages: ChatMessage[] = call.system === undefined ? [] : [{ role: 'system', content: call.system }];
  try {
    if (prompt === undefined) await converse(engine, messages, call);
    else if (!(await turn(engine, messages, prompt, call))) process.exitCode = 130;
  } finally {
    await engine.close();
  }
}

/** Answers one line after another; `terminal`, which tests replace, is where the lines are read from. */
export async function converse(
  engine: Pick<EngineSupervisor, 'chat'>,
  messages: ChatMessage[],
  call: Pick<RunCall, 'request'>,
  terminal: Pick<ReadLineOptions, 'input' | 'output' | 'terminal'> = { input: process.stdin, output: process.stderr },
): Promise<void> {
  const lines = createInterface({ ...terminal, prompt: '> ' });
  let isOpen = true;
  lines.once('close', () => (isOpen = false));
  lines.prompt();
  for await (const line of lines) {
    if (line.trim() === '') break;
    await turn(engine, messages, line, call, lines);
    // Prompting a reader that was closed meanwhile, by Ctrl-D, would resume the terminal, and the command would never end.
    if (isOpen) lines.prompt();
  }
  lines.close();
}

/** Asks one question and prints its answer; both are added to `messages`. Returns false if Ctrl-C ended the answer. */
async function turn(
  engine: Pick<EngineSupervisor, 'chat'>,
  messages: ChatMessage[],
  prompt: string,
  { request }: Pick<RunCall, 'request'>,
  lines?: Interface,
): Promise<boolean> {
  messages.push({ role: 'user', content: prompt });
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  // The reader of a terminal's lines gets its Ctrl-C instead of the process, and closes if nobody listens.
  const heard = lines ? [process, lines] : [process];
  for (const source of heard) source.once('SIGINT', onSignal);
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
  } finally {
    for (const source of heard) source.off('SIGINT', onSignal);
  }
  messages.push({ role: 'assistant', content });
  return !stop.signal.aborted;
}
