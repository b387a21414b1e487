/** `parley pull`, `models` and `rm` as processes, two of them at once, and a server whose model is a source. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { CachedRepo } from '../../sources/node/hub-cache.ts';
import { ID, NEEDED_BYTES, WEIGHTS, hubBench } from '../support/hub-bench.ts';
import { send, until } from '../support/listeners.ts';
import { startParley } from '../support/run-source.ts';
import type { CommandRun } from '../support/run-source.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';

const PARLEY = fileURLToPath(new URL('../../server/parley.mjs', import.meta.url));
const FAKE = new URL('../support/serve-fake.ts', import.meta.url);
const bench = hubBench();

function parley(...argv: string[]): CommandRun {
  const run = startParley(argv, bench.env());
  onTestFinished(() => void run.child.kill('SIGKILL'));
  return run;
}

/** Holds the hub's storage until the function that comes back is called. */
function holdStorage(): () => void {
  let release = (): void => undefined;
  bench.hub.hold = new Promise((resolve) => (release = resolve));
  return release;
}

const askedFor = (name: string): number => bench.hub.requests.filter(({ path }) => path.endsWith(name)).length;
const storageAsked = (): boolean => bench.hub.requests.some(({ host }) => host === 'storage');

test('pull says what came and prints where it is; a second one finds it; rm removes it', async () => {
  const first = parley('pull', ID);
  expect(await first.exit).toBe(0);
  const path = first.out.text.trim();
  expect(readFileSync(join(path, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
  expect(first.err.text).toMatch(
    /somebody\/llama: 0 % of 300 kB\n(somebody\/llama: .*\n)*somebody\/llama: 4 files, 300 kB; 300 kB came in \d+ s \(.*\/s\)\n$/,
  );
  const second = parley('pull', ID, 'models');
  expect(await second.exit).toBe(0);
  expect([second.out.text.split('\n')[0], second.err.text]).toEqual([
    path,
    expect.stringMatching(/^somebody\/llama: 4 files, 300 kB; was here\nmodels: a folder; was here\n$/),
  ]);
  const removed = parley('rm', ID);
  expect([await removed.exit, removed.out.text]).toEqual([0, expect.stringMatching(/^somebody\/llama: removed, 30\d kB are free\n$/)]);
  expect(existsSync(bench.folder)).toBe(false);
});

test('--help lists the commands; a word that is none is refused before anything is set up', async () => {
  const help = parley('--help');
  const wrong = parley('modles');
  expect([await help.exit, help.err.text]).toEqual([0, '']);
  expect([await wrong.exit, wrong.out.text]).toEqual([2, '']);
  for (const command of ['serve', 'pull', 'models', 'rm', 'run', 'adapters', 'doctor']) {
    expect(help.out.text).toMatch(new RegExp(`^  ${command} `, 'm'));
    expect(wrong.err.text).toContain(command);
  }
  expect(wrong.err.text).toMatch(/^there is no command 'modles'; there are serve, .*\n$/);
});

test('--version says the version alone', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string };
  const asked = parley('--version');
  expect([await asked.exit, asked.out.text, asked.err.text]).toEqual([0, `${version}\n`, '']);
});

test('models lists the bundled and the cached ones; a reader who leaves is no failure', async () => {
  await bench.pull();
  const list = parley('models');
  expect(await list.exit).toBe(0);
  const lines = list.out.text.trimEnd().split('\n');
  expect(lines[0]).toMatch(/^SOURCE +SIZE +FORMAT +WHERE$/);
  expect(lines.filter((line) => line.startsWith('models/parley-'))).toHaveLength(3);
  expect(lines.at(-1)).toMatch(/^somebody\/llama +30\d kB +safetensors +.*models--somebody--llama$/);
  const shell = (command: string) => spawnSync('sh', ['-c', command], { encoding: 'utf8', env: { ...process.env, ...bench.env() } });
  const piped = shell(`"${process.execPath}" "${PARLEY}" models | head -1`);
  expect([piped.status, piped.stdout, piped.stderr]).toEqual([0, `${lines[0]}\n`, '']);
  // Nor is one who has left before anything is said.
  for (const option of ['--help', '--version']) {
    const late = spawn('sh', ['-c', `read go; exec "${process.execPath}" "${PARLEY}" ${option}`], {
      env: { ...process.env, ...bench.env() },
    });
    late.stdout.destroy();
    await once(late.stdout, 'close');
    late.stdin.end('go\n');
    expect(await text(late.stderr)).toBe('');
  }
});

test('mistakes end with 2 and one line', async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['pull'], /^Usage: parley pull SOURCE/],
    [['pull', 'a/b@..'], /^"a\/b@\.\.": ".." is no name of a revision.*\n$/],
    [['pull', './nowhere'], /^no such file or folder: .\/nowhere\n$/],
    [['rm', 'a/b'], /^a\/b is not in .*; 'parley models' lists what is\n$/],
    [['rm', 'models/parley-chat'], /^models\/parley-chat is a part of this repository\n$/],
    [['models', '--all'], /^Usage: parley models/],
  ];
  const runs = cases.map(([argv, message]) => ({ run: parley(...argv), message }));
  for (const { run, message } of runs)
    expect([await run.exit, run.err.text, run.out.text]).toEqual([2, expect.stringMatching(message), '']);
});

test('two at once share the work: the second sees how far the first is, and finds the model', async () => {
  const release = holdStorage();
  const first = parley('pull', ID);
  await until(storageAsked);
  const second = parley('pull', ID);
  await until(() => second.err.text.includes(`fetched by process ${first.child.pid!}`));
  release();
  expect([await first.exit, await second.exit]).toEqual([0, 0]);
  expect(second.out.text).toBe(first.out.text);
  expect(second.err.text).toMatch(/was here\n$/);
  expect(askedFor('/model.safetensors')).toBe(1);
});

test('a puller that is killed leaves its work to the one that waits', async () => {
  const release = holdStorage();
  const first = parley('pull', ID);
  await until(storageAsked);
  const second = parley('pull', ID);
  await until(() => second.err.text.includes('fetched by process'));
  first.child.kill('SIGKILL');
  await first.exit;
  release();
  expect(await second.exit).toBe(0);
  expect(readFileSync(join(second.out.text.trim(), 'model.safetensors')).equals(WEIGHTS)).toBe(true);
});

test('a lock that a dead process left, also one that never wrote into it, is taken over', async () => {
  const lock = CachedRepo.lockPath(join(bench.home, 'hub'), ID);
  mkdirSync(dirname(lock), { recursive: true });
  const dead = spawnSync(process.execPath, ['-e', '']).pid;
  // Written in the way of lock.ts, by a process of this machine that is gone.
  const release = holdStorage();
  const first = parley('pull', ID);
  await until(storageAsked);
  const record = JSON.parse(readFileSync(lock, 'utf8')) as object;
  first.child.kill('SIGKILL');
  await first.exit;
  writeFileSync(lock, JSON.stringify({ ...record, pid: dead }).padEnd(512));
  release();
  expect(await parley('pull', ID).exit).toBe(0);
  expect(existsSync(lock)).toBe(false);
});

test('Ctrl-C keeps what came, and the same command goes on', async () => {
  bench.hub.fault = (name) => (name === 'model.safetensors' ? 'stall' : undefined);
  const run = parley('pull', ID);
  await until(() => /: (6\d|70) % of 300 kB/.test(run.err.text) || run.child.exitCode !== null);
  run.child.kill('SIGINT');
  expect(await run.exit).toBe(130);
  expect(run.err.text).toMatch(/stopped; what came is kept, and the same command goes on\n$/);
  const list = parley('models');
  expect(await list.exit).toBe(0);
  // What was begun takes room too, and `rm` takes its name.
  expect(list.out.text).toMatch(/^somebody\/llama +\d+ kB +not whole +.*models--somebody--llama$/m);
  expect(list.out.text).not.toContain('does not read');
  bench.hub.fault = undefined;
  bench.hub.downloads.length = 0;
  const again = parley('pull', ID);
  expect(await again.exit).toBe(0);
  const [range] = bench.hub.downloads.filter(({ name }) => name === 'model.safetensors').map((download) => download.range);
  expect(Number(/^bytes=(\d+)-/.exec(range!)![1])).toBeGreaterThan(NEEDED_BYTES / 2);
});

test('a server fetches its model, calls it by its id, and starts again without the hub', async () => {
  const argv = ['--chat-model', ID, '--speech-model=none', '--transcription-model=none'];
  const first = spawnAt(FAKE, argv, bench.env());
  onTestFinished(() => void first.child.kill('SIGKILL'));
  const { urls, lines } = await whenReady(first);
  expect(lines.some((line) => line.startsWith(`${ID}: `))).toBe(true);
  const models = (await send(`${urls['chat']}/models`)).json as unknown as { readonly data: readonly { readonly id: string }[] };
  expect(models.data.map(({ id }) => id)).toEqual([ID]);
  first.child.kill('SIGINT');
  await first.exit;
  const asked = bench.hub.requests.length;
  const second = spawnAt(FAKE, [...argv, '--served-model-name', 'mine'], bench.env({ HF_HUB_OFFLINE: '1' }));
  onTestFinished(() => void second.child.kill('SIGKILL'));
  const again = await whenReady(second);
  expect(again.lines.find((line) => line.startsWith('chat'))).toMatch(/ mine \(/);
  expect(bench.hub.requests).toHaveLength(asked);
});

test('a server whose model does not exist ends with 2 and one line', async () => {
  const server = spawnAt(FAKE, ['--chat-model', 'somebody/else', '--speech-model=none', '--transcription-model=none'], bench.env());
  expect(await server.exit).toBe(2);
  expect(server.lines).toEqual([expect.stringMatching(/^the hub has no open model somebody\/else; .*; and no folder has this name here$/)]);
});
