/** `parley run` and `parley bench` as processes, and what `parley doctor` finds. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { runBench } from '../../server/commands/bench.ts';
import { chosenBy, describeFindings, examine, memory, namedAdapters } from '../../server/commands/doctor.ts';
import { converse, runPrompt } from '../../server/commands/run.ts';
import { modelPath } from '../../server/commands/chat-command.ts';
import { ROOT } from '../../server/setup/layout.mjs';
import type { ChatMessage, TraceEvent } from '../../engine/index.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import { NOT_OPTIMISED } from '../support/not-optimised.ts';
import { startParley } from '../support/run-source.ts';
import { firstOf } from '../support/thorough.ts';

/** Runs `parley run`; returns its exit code and what it wrote. */
async function run(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const command = startParley(['run', ...argv], env);
  onTestFinished(() => void command.child.kill('SIGKILL'));
  return { code: await command.exit, out: command.out.text, err: command.err.text };
}

test('run answers on stdout, and says how long it took elsewhere', async () => {
  const { code, out, err } = await run(['models/parley-chat', 'What is the capital of France?', '--temperature', '0']);
  expect([code, out]).toEqual([0, 'The capital of France is Paris.\n']);
  expect(err).toMatch(/^\(first token after \d+\.\d\d s, \d+\.\d tokens\/s\)\n$/);
});

test('run takes a quantised file', async () => {
  const file = 'test/fixtures/gguf/tiny/qwen3-Q4_K_M.gguf';
  const { code, err } = await run([file, 'the boat', '--temperature', '0', '--max-tokens', '4'], NOT_OPTIMISED);
  expect(code).toBe(0);
  expect(err).toMatch(/tokens\/s; it ends at the number of tokens that was allowed\)\n$/);
});

test('a conversation goes on behind an answer that Ctrl-C ended, and ends behind one that Ctrl-D came into', async () => {
  const engine = new FakeEngine({ words: Array.from({ length: 200 }, (_, i) => ` ${i}`), delay: 1 });
  // As a terminal that is read key by key: Ctrl-C is a character there, and no signal.
  const [input, output] = [new PassThrough(), new PassThrough()];
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  onTestFinished(() => write.mockRestore());
  const messages: ChatMessage[] = [];
  const ended = converse(engine, messages, { request: { sampling: {} } }, { input, output: output.resume(), terminal: true });
  input.write('One\r');
  await expect.poll(() => engine.handedOut).toBeGreaterThan(2);
  input.write('\x03');
  await expect.poll(() => engine.aborted).toBe(1);
  const before = engine.handedOut;
  input.write('Two\r');
  await expect.poll(() => engine.handedOut).toBeGreaterThan(before + 2);
  input.write('\x04');
  await ended;
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
  expect(messages[1]!.content!.length).toBeLessThan(messages[3]!.content!.length);
  // A terminal that is still read keeps the command from ending.
  expect(input.isPaused()).toBe(true);
});

test('a bundled model is found from any folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-elsewhere-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const before = process.cwd();
  process.chdir(folder);
  onTestFinished(() => process.chdir(before));
  expect(await modelPath('models/parley-chat')).toBe(join(ROOT, 'models/parley-chat'));
});

/** What a command writes and ends with, in this process: one of its own begins with a second and a half of the processor. */
async function refused(command: (argv: readonly string[]) => Promise<void>, argv: readonly string[]) {
  const written = { out: '', err: '' };
  const listen = (stream: NodeJS.WriteStream, name: keyof typeof written) =>
    vi.spyOn(stream, 'write').mockImplementation((chunk) => Boolean((written[name] += String(chunk))));
  const spies = [listen(process.stdout, 'out'), listen(process.stderr, 'err')];
  try {
    await command(argv);
    return { code: process.exitCode, ...written };
  } finally {
    for (const spy of spies) spy.mockRestore();
    process.exitCode = undefined;
  }
}

test.each([
  [['models/parley-chat', 'Hi', '--max-tokens', '1.5'], /^--max-tokens 1\.5: expected a whole number from 1 /],
  [['models/parley-chat', 'Hi', 'there'], /^2 prompts are given; put one into quotation marks/],
  [['models/parley-chat', 'Hi', '--top', '1'], /^Unknown option '--top'; /],
  [['--seed', '1'], /^no model is named; /],
  [['', 'Hi'], /^no model is named; /],
  [['models/parley-chat', 'Hi', '--seed', '-1'], /^--seed -1: expected a whole number from 0 to 9007199254740991; /],
])('run %j is refused before anything is loaded', async (argv, message) => {
  const { code, out, err } = await refused(runPrompt, argv);
  expect([code, out]).toEqual([2, '']);
  expect(err).toMatch(message);
  expect(err.trimEnd()).not.toContain('\n');
});

test.each([
  [['models/parley-chat', 'Hi', '--temperature', '9'], /^--temperature 9: expected a number from 0 to 2; .*\n$/],
  [
    ['no-such-model', 'Hi'],
    /^no such file or folder: no-such-model; nor is a model of this name recommended \('parley models --recommended' lists those\)\n$/,
  ],
  [
    ['models/parley-speech', 'Hi'],
    /^models\/parley-speech: config\.json: a speech model .*, where a chat model is expected; 'npm start' serves it with --speech-model\n$/,
  ],
])('run %j is refused in a line', async (argv, message) => {
  const { code, out, err } = await run(argv);
  expect([code, out]).toEqual([2, '']);
  expect(err).toMatch(message);
  expect(err.trimEnd()).not.toContain('\n');
});

test('bench measures a model and says what of the adapter it uses', async () => {
  const trace = join(mkdtempSync(join(tmpdir(), 'parley-bench-')), 'trace.json');
  onTestFinished(() => rmSync(dirname(trace), { recursive: true }));
  const argv = ['bench', '--prompt-tokens', '24', '--tokens', '6', '--clients', '1,3', '--json', '--trace', trace];
  const command = startParley(argv, {});
  onTestFinished(() => void command.child.kill('SIGKILL'));
  expect([await command.exit, command.err.text]).toEqual([0, '']);
  type Figures = Readonly<Record<string, number>>;
  const report = JSON.parse(command.out.text) as {
    readonly rows: readonly { readonly clients: number; readonly firstToken: Figures; readonly betweenTokens: Figures }[];
    readonly shares: Figures;
    readonly adapter: { readonly speed: Figures };
    readonly kernels: readonly {
      readonly label: string;
      readonly count: number;
      readonly milliseconds: number;
      readonly expectedMilliseconds: number;
    }[];
  };
  expect(report).toMatchObject({ model: { id: 'parley-chat', architecture: 'llama' }, promptTokens: 24, tokens: 6 });
  expect(report.rows.map(({ clients }) => clients)).toEqual([1, 3]);
  const figures = report.rows.flatMap(({ firstToken, betweenTokens, ...row }) =>
    [row, firstToken, betweenTokens].flatMap((figures) => Object.values<number>(figures)),
  );
  expect(figures).toHaveLength(14);
  for (const figure of [...figures, ...[report.shares, report.adapter.speed].flatMap((figures) => Object.values<number>(figures))])
    expect(figure).toBeGreaterThan(0);
  for (const { label, expectedMilliseconds } of report.kernels) expect(expectedMilliseconds, label).toBeGreaterThanOrEqual(0);
  // Every token of one answer by itself: its products of matrices are among the kernels.
  expect(report.kernels.map(({ label }) => label).join()).toContain('linear');
  // The same, dispatch by dispatch, as Chrome's format of trace events has it: one after the other on one track.
  const { traceEvents } = JSON.parse(readFileSync(trace, 'utf8')) as { readonly traceEvents: readonly TraceEvent[] };
  expect(traceEvents.filter(({ ph }) => ph === 'M').map(({ name }) => name)).toEqual(['process_name', 'thread_name']);
  const spans = traceEvents.filter(({ ph }) => ph === 'X');
  expect(spans).toHaveLength(report.kernels.reduce((sum, { count }) => sum + count, 0));
  for (const [i, { ts = NaN, dur = NaN, pid, tid, name, args }] of spans.entries()) {
    expect([pid, tid, args['variant']?.startsWith(name)]).toEqual([1, 1, true]);
    expect(dur).toBeGreaterThanOrEqual(0);
    const before = spans[i - 1];
    // To a nanosecond, which is what the stamps have.
    expect(ts).toBeGreaterThanOrEqual(before ? before.ts! + before.dur! - 0.0015 : 0);
  }
  const traced = spans.reduce((sum, { dur = NaN }) => sum + dur / 1000, 0);
  expect(traced).toBeCloseTo(
    report.kernels.reduce((sum, { milliseconds }) => sum + milliseconds, 0),
    3,
  );
});

test.each(
  firstOf(1, [
    ['parley-transcribe', 'transcription', 'linear'],
    ['parley-speech', 'speech', 'conv1d'],
  ]),
)('bench measures %s', async (id, task, kernel) => {
  // Node warns of a leak where more than ten requests listen to one signal.
  const command = startParley(['bench', `models/${id}`, '--clients', '11', '--json'], {});
  onTestFinished(() => void command.child.kill('SIGKILL'));
  expect([await command.exit, command.err.text]).toEqual([0, '']);
  type Row = Readonly<Record<string, number>> & { readonly label: string };
  const report = JSON.parse(command.out.text) as {
    readonly model: object;
    readonly rows: readonly Row[];
    readonly kernels: readonly Row[];
  };
  expect(report.model).toMatchObject({ id, task });
  expect(report.rows).toMatchObject([{ clients: 11 }]);
  expect(report.rows[0]!['timesRealTime']).toBeGreaterThan(0);
  // What each should take, of all that ran.
  for (const row of report.kernels) expect(row['expectedMilliseconds'], row.label).toBeGreaterThan(0);
  const products = report.kernels.filter(({ label }) => label.startsWith(kernel));
  expect(products.reduce((sum, row) => sum + row['operations']!, 0)).toBeGreaterThan(1e8);
});

test('bench makes the weights of a shape by itself', async () => {
  const argv = ['bench', '--random', 'llama-tiny', '--quantization', 'q4_k', '--layers', '1', '--seed', '5'];
  const command = startParley([...argv, '--prompt-tokens', '8', '--tokens', '3', '--clients', '1', '--json'], NOT_OPTIMISED);
  onTestFinished(() => void command.child.kill('SIGKILL'));
  expect([await command.exit, command.err.text]).toEqual([0, '']);
  const report = JSON.parse(command.out.text) as { readonly model: object; readonly kernels: readonly { readonly label: string }[] };
  expect(report.model).toMatchObject({ id: 'llama-tiny-q4_k-1layers-seed5', format: 'random Q4_K', parameters: 1_114_880 });
  expect(report.kernels.map(({ label }) => label).join()).toMatch(/Q4_K/);
});

test('bench refuses what is no number, and more than a model', async () => {
  for (const [argv, message] of [
    [['--random', 'constructor'], /^--random constructor: expected one of llama-tiny, /],
    [['--random', 'llama-9b'], /^--random llama-9b: expected one of llama-tiny, llama-0\.5b, /],
    [['--random', 'llama-8b', '--quantization', 'q4'], /^--quantization q4: expected one of f32, f16, bf16, q4_0, /],
    [['--random', 'llama-8b', '--layers', '33'], /^--layers 33: expected a whole number from 1 to 32; /],
    [['--random', 'llama-8b', 'models/a'], /^--random and models\/a: 'bench' takes one model; /],
    [['--random', 'llama-8b', '--seed', '-1'], /^--seed -1: expected a whole number from 0 to 4294967295; /],
    [['--tokens', '-5', '--json'], /^--tokens -5: expected a whole number from 2 /],
    [['-5'], /^Unknown option '-5'; /],
    [['models/a', '--seed', '3'], /^--seed goes with --random; /],
    [['--numerics', 'exact'], /^--numerics exact: expected invariant or fast; /],
    [['--clients', '1,x'], /^--clients x: expected a whole number from 1 to 256; 'parley bench --help' lists what there is\n$/],
    [['--trace', join(tmpdir(), 'no-such-folder', 't.json')], /^--trace .*t\.json: it cannot be written \(ENOENT\); /],
    [['models/a', 'models/b'], /^2 models are named; 'bench' takes one; /],
  ] as const) {
    expect(await refused(runBench, argv)).toEqual({ code: 2, out: '', err: expect.stringMatching(message) as string });
  }
});

const NOTHING = { host: '0.0.0.0', ports: [], adapters: [] };

test('doctor finds a port that is taken and a hub that is away, and says what helps', async () => {
  const hub = createServer((_request, response) => response.writeHead(503).end());
  const taken = createServer();
  for (const server of [hub, taken]) onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => hub.listen(0, '127.0.0.1', resolve));
  await new Promise<void>((resolve) => taken.listen(0, resolve));
  const [hubPort, takenPort] = [hub, taken].map((server) => (server.address() as AddressInfo).port) as [number, number];
  const settings = { hubCache: `${homedir()}/no/such/folder`, ownCache: homedir(), endpoint: `http://127.0.0.1:${hubPort}` };
  const findings = await examine(settings, {
    host: '0.0.0.0',
    ports: [['--port', takenPort]],
    adapters: [['PARLEY_ADAPTER', 'nope']],
  });
  const of = (what: string) => findings.find((finding) => finding.what === what);
  expect(of(`port ${takenPort}`)).toMatchObject({ state: 'wrong', mend: '--port chooses another' });
  expect(of('hub')).toMatchObject({ state: 'note', found: expect.stringContaining('answers 503') as string });
  expect(of('Node')?.state).toBe('ok');
  expect(of('adapter')?.found).toMatch(/\S/);
  // Or there is no adapter at all.
  expect(findings.filter(({ what }) => what === 'adapter').at(-1)).toMatchObject({
    state: 'wrong',
    found: expect.stringMatching(/^(PARLEY_ADAPTER: no WebGPU adapter matches 'nope'; there (is|are) '|no WebGPU adapter)/) as string,
  });
  expect(of('disk')?.found).toMatch(/free for models in .*no.such.folder$/);
  const file = fileURLToPath(new URL('../../package.json', import.meta.url));
  expect((await examine({ ...settings, offline: 'x', hubCache: join(file, 'hub') }, NOTHING)).find(({ what }) => what === 'disk')).toEqual({
    what: 'disk',
    state: 'note',
    found: `no model can be kept in ${join(file, 'hub')}: ${file} may not be written (EACCES)`,
    mend: 'HF_HOME and PARLEY_CACHE name folders that may',
  });
  expect((await examine({ ...settings, offline: 'HF_HUB_OFFLINE' }, NOTHING)).find(({ what }) => what === 'hub')?.found).toBe(
    'not asked: HF_HUB_OFFLINE is set',
  );
});

// Other systems have no second address for themselves.
test.runIf(process.platform === 'linux')('doctor looks at ports of the address that the listeners have', async () => {
  const taken = createServer();
  onTestFinished(() => void taken.close());
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.2', resolve));
  const { port } = taken.address() as AddressInfo;
  const settings = { hubCache: homedir(), ownCache: homedir(), endpoint: '', offline: 'HF_HUB_OFFLINE' };
  const found = async (host: string) => {
    const findings = await examine(settings, { host, ports: [['--port', port]], adapters: [] });
    return findings.find(({ what }) => what === `port ${port}`);
  };
  expect(await found('127.0.0.1')).toMatchObject({ state: 'ok' });
  expect(await found('127.0.0.2')).toMatchObject({ state: 'wrong', mend: '--port chooses another' });
  // An address for documents, which no machine has.
  expect(await found('192.0.2.1')).toMatchObject({ state: 'wrong', found: '192.0.2.1 is no address of this machine' });
  // A name that nobody needs to be asked for.
  expect(await found('no..name')).toMatchObject({ state: 'wrong', mend: '--host chooses another' });
});

test.each([
  [
    'an address of a hub that is none',
    'doctor',
    { HF_ENDPOINT: 'ftp://hub.example' },
    /^HF_ENDPOINT is "ftp:\/\/hub\.example": must be https; /,
  ],
  [
    'no folder for temporary files',
    'models',
    { TMPDIR: '/no/such/folder' },
    /^temporary files cannot be written to \/no\/such\/folder \(ENOENT\); TMPDIR /,
  ],
  [
    'one that only seems to be',
    'models',
    { TMPDIR: process.platform === 'linux' ? '/proc' : '/no' },
    /^temporary files cannot be written to .*; TMPDIR /,
  ],
])('%s is one line', async (_, name, env, message) => {
  const command = startParley([name], env);
  onTestFinished(() => void command.child.kill('SIGKILL'));
  expect([await command.exit, command.out.text]).toEqual([2, '']);
  expect(command.err.text).toMatch(message);
  expect(command.err.text.trimEnd()).not.toContain('\n');
});

test('doctor finds the driver that a start would use, where it was unpacked earlier too', async () => {
  const command = startParley(['doctor'], { VK_DRIVER_FILES: undefined, LD_LIBRARY_PATH: undefined, HF_HUB_OFFLINE: '1' });
  onTestFinished(() => void command.child.kill('SIGKILL'));
  await command.exit;
  expect(command.out.text).toMatch(/^(ok|note) +adapter +\S/m);
});

test('doctor says what to leave out where memory is short, below what it is about', () => {
  expect(memory(8e9, 16e9)).toEqual({ what: 'memory', state: 'ok', found: expect.stringMatching(/^8.* GB free of 16.* GB$/) as string });
  const [first, second] = describeFindings([memory(5e8, 16e9)]);
  expect(first).toMatch(/^note {3}memory {2}500 MB free/);
  expect(second).toMatch(/^ +--speech-model none/);
});

test('doctor looks at the ports that the environment chooses, and says what is wrong there', () => {
  const usual = [['--port', 3000], ['--speech-port', 3001], ['--transcription-port', 3002]]; // prettier-ignore
  expect(chosenBy({})).toEqual({ host: '0.0.0.0', ports: usual, adapters: [], problems: [] });
  const chosen = { PARLEY_HOST: '127.0.0.1', PARLEY_PORT: '4000', PARLEY_SPEECH_PORT: '0', PARLEY_TRANSCRIPTION_MODEL: 'none' };
  expect(chosenBy(chosen)).toEqual({ host: '127.0.0.1', ports: [['--port', 4000]], adapters: [], problems: [] });
  const { ports, problems } = chosenBy({ PARLEY_PORT: 'http' });
  expect(ports).toEqual([]);
  expect(problems).toEqual([{ what: 'settings', state: 'wrong', found: expect.stringMatching(/^PARLEY_PORT=http: must be /) }]);
});

test('doctor looks for the adapters that the environment names for the models it has', () => {
  const env = { PARLEY_ADAPTER: 'B', PARLEY_ADAPTERS: 'A#1,A', PARLEY_SPEECH_MODEL: 'none', PARLEY_SPEECH_ADAPTER: 'C' };
  const { adapters } = chosenBy(env);
  expect(adapters).toEqual([['PARLEY_ADAPTERS', 'A#1'], ['PARLEY_ADAPTERS', 'A'], ['PARLEY_ADAPTER', 'B']]); // prettier-ignore
  expect(namedAdapters(adapters, ['a 1', 'X B'])).toEqual([
    { what: 'adapter', state: 'wrong', found: "PARLEY_ADAPTERS: no WebGPU adapter matches 'A#1'; there are 'a 1', 'X B'", mend: "'parley adapters' shows what names they have" },
    { what: 'adapter', state: 'ok', found: 'PARLEY_ADAPTERS means a 1' },
    { what: 'adapter', state: 'ok', found: 'PARLEY_ADAPTER means X B' },
  ]); // prettier-ignore
});
