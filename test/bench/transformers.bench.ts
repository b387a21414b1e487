/**
 * Chat beside transformers.js on the same adapter: one client, the bundled model as an ONNX export made by test/tools/export_onnx.py, greedy tokens
 * compared first. `npm run bench -- transformers [folder of an export]`. The export needs Python with onnx and safetensors (PARLEY_PYTHON).
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ChatRequest } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { framesOf } from '../support/chat-body.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import { benchDevice, fixed, loadText, printMachine, printTable } from './harness.ts';
import { percentile } from './serving/load.ts';

/** In a variable: what is used of it is typed below, and tsc need not read its own types. */
const TRANSFORMERS: string = '@huggingface/transformers';
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MODEL = join(ROOT, 'models', 'parley-chat');
const TOKENS = 24;
const ROUNDS = 5;
const PROMPTS = ['Tell me a short story about a fox.', 'What is the capital of France?', 'Can you help me plan a trip to the sea?'].map((text) => `<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`); // prettier-ignore

/** What is used of transformers.js. */
interface Transformers {
  readonly env: { allowRemoteModels: boolean; localModelPath: string };
  readonly AutoModelForCausalLM: { from_pretrained(id: string, options: object): Promise<{ generate(options: object): Promise<{ data: BigInt64Array }> }> }; // prettier-ignore
  readonly Tensor: new (type: string, data: BigInt64Array, dims: readonly number[]) => unknown;
  readonly BaseStreamer: new () => object;
}

/** One way to get a greedy answer of so many tokens, special ones spelled; `onToken` hears of them as they come. */
interface Contender {
  readonly name: string;
  generate(prompt: readonly number[], count: number, onToken: () => void): Promise<string>;
}

/** The folder of an export; undefined, with a word why, where Python cannot make one. */
function exportModel(): string | undefined {
  const folder = join(mkdtempSync(join(tmpdir(), 'parley-onnx-')), 'parley-chat');
  const python = process.env['PARLEY_PYTHON'] ?? 'python3';
  const { status, stderr } = spawnSync(python, [join(ROOT, 'test', 'tools', 'export_onnx.py'), MODEL, folder], { encoding: 'utf8' });
  if (status === 0) return folder;
  console.log(`not run: ${python} could not export the model, which takes onnx and safetensors (PARLEY_PYTHON): ${stderr.trim().split('\n').at(-1)}`); // prettier-ignore
  return undefined;
}

async function transformersOn(library: Transformers, folder: string, device: 'webgpu' | 'cpu'): Promise<Contender> {
  const { env, AutoModelForCausalLM, Tensor, BaseStreamer } = library;
  [env.allowRemoteModels, env.localModelPath] = [false, `${dirname(folder)}/`];
  const sessionOptions = { logSeverityLevel: 3, extra: { session: { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } } } }; // prettier-ignore
  const model = await AutoModelForCausalLM.from_pretrained(basename(folder), { device, dtype: 'fp32', session_options: sessionOptions });
  const row = (values: readonly number[]): unknown => new Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length]);
  return {
    name: device === 'cpu' ? 'transformers.js, CPU provider (native code)' : 'transformers.js, WebGPU',
    async generate(prompt, count, onToken) {
      let told = 0;
      // The first call brings the prompt.
      const streamer = Object.assign(new BaseStreamer(), { put: () => void (told++ > 0 && onToken()), end: () => undefined });
      const inputs = { input_ids: row(prompt), attention_mask: row(prompt.map(() => 1)) };
      const options = { max_new_tokens: count, min_new_tokens: 0, eos_token_id: -1, do_sample: false, streamer };
      const { data } = await model.generate({ ...inputs, ...options });
      return tokenizer.decode([...data].slice(prompt.length).map(Number), { skipSpecialTokens: false });
    },
  };
}

async function parley(dtype: 'f16' | 'f32'): Promise<Contender> {
  const device = await benchDevice('default');
  const config = resolveConfig({ dtype, disableRadixCache: true, maxRunningRequests: 4 });
  const engine = await ChatEngine.load(device, createNodePlatform({ log: () => undefined }), { path: MODEL }, config);
  return {
    name: `Parley, ${dtype} weights`,
    async generate(prompt, maxTokens, onToken) {
      const request: ChatRequest = { messages: [], prompt, sampling: { temperature: 0 }, maxTokens, ignoreEos: true, skipSpecialTokens: false }; // prettier-ignore
      let text = '';
      for await (const event of engine.chat(request, new AbortController().signal)) {
        if (event.type !== 'delta') continue;
        text += event.text;
        onToken();
      }
      return text;
    },
  };
}

/** The same through HTTP, from another process, streamed. */
async function parleyServer(): Promise<Contender> {
  const argv = ['--speech-model=none', '--transcription-model=none', '--disable-radix-cache'];
  const { urls, child } = await whenReady(spawnAt(new URL('../../server/main.ts', import.meta.url), argv));
  process.on('exit', () => child.kill('SIGKILL'));
  return {
    name: 'Parley, f16 weights, through HTTP',
    async generate(prompt, count, onToken) {
      const body = { model: 'parley-chat', prompt, max_tokens: count, temperature: 0, ignore_eos: true, stream: true, skip_special_tokens: false }; // prettier-ignore
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`${urls['chat']}/completions`, { method: 'POST', headers, body: JSON.stringify(body) });
      let text = '';
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
        for (const _ of framesOf(chunk)) onToken();
        text += chunk;
      }
      return framesOf(text).map(({ choices }) => (choices[0] as unknown as { text?: string } | undefined)?.text ?? '').join(''); // prettier-ignore
    },
  };
}

/** Milliseconds to the first token, and tokens a second after it. */
async function time({ generate }: Contender, prompt: readonly number[]): Promise<{ readonly first: number; readonly rate: number }> {
  const from = performance.now();
  const times: number[] = [];
  await generate(prompt, TOKENS, () => times.push(performance.now()));
  return { first: times[0]! - from, rate: (1000 * (TOKENS - 1)) / (times.at(-1)! - times[0]!) };
}

const tokenizer = await Tokenizer.load(await openModelFolder(createNodePlatform(), MODEL));
const prompts = PROMPTS.map((text) => tokenizer.encode(text, { addSpecialTokens: false }));
const folder = process.argv[2] === undefined ? exportModel() : resolve(process.argv[2]);
if (folder === undefined) process.exit(0);
const library = (await import(TRANSFORMERS)) as Transformers;
const machine = await benchDevice('default');
printMachine(machine);
machine.close();
const contenders = [await parley('f16'), await parley('f32'), await parleyServer(), await transformersOn(library, folder, 'webgpu'), await transformersOn(library, folder, 'cpu')]; // prettier-ignore

// Twice, so that every kernel of every length is compiled; and the answers are compared.
for (const [i, prompt] of prompts.entries()) {
  const answers: string[] = [];
  for (const { name, generate } of contenders) {
    answers.push(await generate(prompt, TOKENS, () => undefined));
    console.log(
      `prompt ${i}, ${name}: ${answers.at(-1) === answers[0] ? 'the same' : 'ANOTHER'} answer: ${JSON.stringify(answers.at(-1))}`,
    );
  }
  if (answers.some((answer) => answer !== answers[0])) process.exitCode = 1;
}
const samples = contenders.map(() => [] as { readonly first: number; readonly rate: number }[]);
for (let round = 0; round <= ROUNDS; round++) {
  for (const [i, contender] of contenders.entries()) {
    const sample = await time(contender, prompts[0]!);
    if (round > 0) samples[i]!.push(sample);
  }
}
const median = (values: readonly number[]): string => fixed(percentile(values, 0.5), 1);
printTable(
  [`greedy, ${prompts[0]!.length} + ${TOKENS} tokens, 1 client`, 'first token ms', 'tokens/s', 'load'],
  contenders.map(({ name }, i) => [name, median(samples[i]!.map(({ first }) => first)), median(samples[i]!.map(({ rate }) => rate)), loadText()]), // prettier-ignore
);
process.exit();
