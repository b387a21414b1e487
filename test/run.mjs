/**
 * `npm test [-- filter ...]`: set-up, type check, all tests; `npm run test:everywhere`: other browsers, runtimes and adapters; `npm run test:real [-- filter ...]`: the
 * tests on published weights, which it fetches;
 * `npm run bench [-- name [part of a shape]]`: set-up and benchmarks. The last line of a test run is `N passed, N failed, N skipped`, for CI.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { basename, join } from 'node:path';
import { ROOT } from '../server/setup/layout.mjs';
import { buildPlayground, installPackages, requireNode, withSetup } from '../server/setup/setup.mjs';
import { ensureAdapter } from '../server/setup/drivers.mjs';
import { ensureBrowsers } from './setup-browsers.mjs';
import { summarise } from './results.mjs';

const VITEST = 'vitest/vitest.mjs';
/** A command in this process's terminal. */
const INHERIT = { cwd: ROOT, stdio: 'inherit' };

/** What tests call published weights, where that is not the recipe's name. */
const WEIGHTS = { 'kokoro-82m-int8': 'kokoro' };

await withSetup(async () => {
  const [first, ...rest] = process.argv.slice(2);
  const bench = first === '--bench';
  const real = first === '--real';
  const everywhere = first === '--everywhere';
  requireNode();
  const wanted = [...(bench || real ? [] : ['chromium']), ...(everywhere || rest[0] === 'browsers' ? ['firefox'] : [])];
  const browsers = ensureBrowsers(wanted);
  installPackages({ dev: true });
  const { name, environment } = ensureAdapter();
  Object.assign(process.env, environment);
  // The fuzzer asks for the page's files too.
  if ((!bench && !real) || rest[0] === 'fuzz') process.env.PARLEY_BUILT_PLAYGROUND = buildPlayground();
  await browsers;
  console.log(`adapter: ${name}`);
  if (everywhere) process.exitCode = runVitest(['--project=everywhere', ...rest]);
  else process.exitCode = bench ? runBenches(rest) : real ? runReal(rest) : await runTests(process.argv.slice(2));
});

/** Where a command of an npm package lies. */
function tool(path) {
  return join(ROOT, 'node_modules', path);
}

/** Runs an npm package's command in this process's terminal; returns its exit status. */
function runTool(path, ...args) {
  return spawnSync(process.execPath, [tool(path), ...args], INHERIT).status ?? 1;
}

/** The exit status of a process, once it has ended and all that it wrote is read. */
async function ended(child) {
  const [status] = await once(child, 'close');
  return status ?? 1;
}

/** `name` is the beginning of a benchmark's; the rest goes to it (a part of the shapes' names). */
function runBenches([name = '', ...rest]) {
  const folder = join(ROOT, 'test', 'bench');
  const known = readdirSync(folder).filter((file) => file.endsWith('.bench.ts'));
  // These take minutes, or want models: only when asked for.
  const named = [
    'audio-matrix',
    'audio-memory',
    'audio-soak',
    'browsers',
    'expected',
    'fleet',
    'fleet-soak',
    'fuzz',
    'invented',
    'llama',
    'load',
    'probes',
    'published',
    'quantised',
    'recognition',
    'soak',
  ];
  const byName = [...named, 'voices'].map((name) => `${name}.bench.ts`);
  const isAsked = (file) => (known.includes(`${name}.bench.ts`) ? file === `${name}.bench.ts` : file.startsWith(name));
  const chosen = known.filter((file) => (name === '' ? !byName.includes(file) : isAsked(file)));
  if (chosen.length === 0) {
    console.error(`no benchmark is named ${name}; there are: ${known.map((file) => file.replace('.bench.ts', '')).join(', ')}`);
    return 1;
  }
  return chosen.map((file) => runTool('tsx/dist/cli.mjs', join(folder, file), ...rest)).some(Boolean) ? 1 : 0;
}

/** What a script of package.json passes to its tool. */
function argumentsOf(script) {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  return scripts[script].split(' ').slice(1);
}

/** Who asks for a few tests is at work on them: they get the type check first. The whole run does what it can side by side. */
async function runTests(filters) {
  const typeCheck = ['type check', 'typescript/bin/tsc', '-p', 'tsconfig.json'];
  if (filters.length > 0) return (await check(...typeCheck)).passed ? runVitest(filters) : 1;
  const formatCheck = ['format check', 'oxfmt/bin/oxfmt', ...argumentsOf('format:check')];
  const lint = ['lint', 'oxlint/bin/oxlint', ...argumentsOf('lint')];
  const [plain, devices] = [reportOf('plain'), reportOf('devices')];
  // Browsers and adapters leave an eighth of two cores unused: what opens hardly a device goes there, one after the other, and holds nothing up.
  const beside = async () => {
    const checks = [];
    for (const each of [typeCheck, formatCheck, lint]) checks.push(await check(...each));
    const tests = await check('tests without devices', VITEST, ...vitestArguments(plain), '--project=plain*', '--maxWorkers=1');
    // Its report names what failed, but for what no test was blamed for.
    const unhandled = tests.output.indexOf('Unhandled');
    return [...checks, { ...tests, output: unhandled < 0 ? undefined : tests.output.slice(unhandled) }];
  };
  const main = async () => {
    const child = spawn(process.execPath, [tool(VITEST), ...vitestArguments(devices), '--project=devices*', '--project=kernels*'], INHERIT);
    return { title: 'tests with devices', passed: (await ended(child)) === 0 };
  };
  const [others, tested] = await Promise.all([beside(), main()]);
  return summarise([plain, devices], [...others, tested], ROOT);
}

/** Runs an npm package's command at a lower priority; its output comes whole when it ends, and is returned. */
async function check(title, path, ...args) {
  const child = spawn(process.execPath, [tool(path), ...args], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  // So low that a browser is not held up, not so low that a test waits for its turn until it is too late.
  setPriority(child.pid, 3);
  const chunks = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => chunks.push(chunk));
  const passed = (await ended(child)) === 0;
  const output = Buffer.concat(chunks).toString();
  console.log(`${title}: ${passed ? 'passed' : 'FAILED'}`);
  process.stdout.write(output);
  return { title, passed, output };
}

/** Tests on published weights: those of PARLEY_WEIGHTS, else what the recipes of models/ and of tests fetch. What cannot be fetched is said, and its tests are skipped. */
function runReal(filters) {
  process.env.PARLEY_WEIGHTS ??= fetchWeights();
  return runVitest(filters.length > 0 ? filters : ['real']);
}

/** Pulls every recipe; returns a folder with links to what came. */
function fetchWeights() {
  const folder = join(ROOT, '.parley', 'weights');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const recipes = ['models/recipes', 'test/fixtures/recipes'].flatMap((place) =>
    readdirSync(join(ROOT, place)).map((file) => `${place}/${file}`),
  );
  for (const file of recipes) {
    const argv = [join(ROOT, 'server', 'parley.mjs'), 'pull', file];
    const { status, stdout } = spawnSync(process.execPath, argv, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
    const path = stdout.trim();
    const name = basename(file, '.json');
    if (status !== 0) console.error(`weights: ${name} could not be fetched (above); tests on it are skipped`);
    else symlinkSync(path, join(folder, statSync(path).isFile() ? basename(path) : (WEIGHTS[name] ?? name)));
  }
  return folder;
}

function runVitest(filters) {
  const report = reportOf('tests');
  const status = runTool(VITEST, ...vitestArguments(report), ...filters);
  return summarise([report], [{ title: 'tests', passed: status === 0 }], ROOT);
}

/** Where vitest writes what came of a run; no earlier one lies there. */
function reportOf(name) {
  const report = join(ROOT, '.parley', `${name}-results.json`);
  rmSync(report, { force: true });
  return report;
}

function vitestArguments(report) {
  return ['run', '--config', 'test/vitest.config.ts', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
}
