/**
 * `npm test [-- filter ...]`: set-up, type check, all tests; `npm run test:real [-- filter ...]`: the tests on published weights, which it fetches;
 * `npm run bench [-- name [part of a shape]]`: set-up and benchmarks. The last line of a test run is `N passed, N failed, N skipped`, for CI.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { basename, join, sep } from 'node:path';
import { ROOT, buildPlayground, installPackages, requireNode, withSetup } from '../server/setup/setup.mjs';
import { ensureAdapter } from '../server/setup/drivers.mjs';
import { ensureChromium } from './setup-chromium.mjs';

/** What tests call published weights, where that is not the recipe's name. */
const WEIGHTS = { 'kokoro-82m-int8': 'kokoro' };

await withSetup(async () => {
  const [first, ...rest] = process.argv.slice(2);
  const bench = first === '--bench';
  const real = first === '--real';
  requireNode();
  installPackages({ dev: true });
  const { name, environment } = ensureAdapter();
  Object.assign(process.env, environment);
  if (!bench && !real) ensureChromium();
  // The fuzzer asks for the page's files too.
  if ((!bench && !real) || rest[0] === 'fuzz') process.env.PARLEY_BUILT_PLAYGROUND = buildPlayground();
  console.log(`adapter: ${name}`);
  process.exitCode = bench ? runBenches(rest) : real ? runReal(rest) : await runTests(process.argv.slice(2));
});

/** Runs an npm package's command in this process's terminal; returns its exit status. */
function runTool(path, ...args) {
  return spawnSync(process.execPath, [join(ROOT, 'node_modules', path), ...args], { cwd: ROOT, stdio: 'inherit' }).status ?? 1;
}

/** `name` is the beginning of a benchmark's; the rest goes to it (a part of the shapes' names). */
function runBenches([name = '', ...rest]) {
  const folder = join(ROOT, 'test', 'bench');
  const known = readdirSync(folder).filter((file) => file.endsWith('.bench.ts'));
  // These take minutes, or want models: only when asked for.
  const byName = ['audio-memory', 'fuzz', 'llama', 'load', 'quantised', 'recognition', 'soak', 'voices'].map((name) => `${name}.bench.ts`);
  const chosen = known.filter((file) => (name === '' ? !byName.includes(file) : file.startsWith(name)));
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

async function runTests(filters) {
  const checks = [['type check', 'typescript/bin/tsc', '-p', 'tsconfig.json']];
  // Who asks for a few tests is at work on them.
  if (filters.length === 0) {
    checks.push(['format check', 'prettier/bin/prettier.cjs', '--log-level=warn', ...argumentsOf('format:check')]);
    checks.push(['lint', 'oxlint/bin/oxlint', ...argumentsOf('lint')]);
  }
  const passed = await Promise.all(checks.map((check) => passes(...check)));
  return passed.every(Boolean) ? runVitest(filters) : 1;
}

/** Runs an npm package's command beside others; its output comes whole when it ends. */
async function passes(title, path, ...args) {
  const tool = spawn(process.execPath, [join(ROOT, 'node_modules', path), ...args], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = [];
  for (const stream of [tool.stdout, tool.stderr]) stream.on('data', (chunk) => output.push(chunk));
  const [status] = await once(tool, 'close');
  console.log(title);
  process.stdout.write(Buffer.concat(output));
  return status === 0;
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
  const report = join(ROOT, '.parley', 'test-results.json');
  rmSync(report, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const status = runTool('vitest/vitest.mjs', 'run', '--config', 'test/vitest.config.ts', ...reporters, ...filters);
  const { numPassedTests, numFailedTests, numPendingTests, testResults } = JSON.parse(readFileSync(report, 'utf8'));
  const broken = testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length;
  const kernels = testResults
    .filter((file) => file.name.includes(`${sep}test${sep}kernels${sep}`))
    .flatMap((file) => file.assertionResults);
  // A machine where every kernel case skips has tested nothing: that must not look like success.
  const untested = kernels.length > 0 && !kernels.some((test) => test.status === 'passed');
  if (untested) console.error('no kernel case ran');
  console.log(`${numPassedTests} passed, ${numFailedTests + broken} failed, ${numPendingTests} skipped`);
  return status !== 0 || untested ? 1 : 0;
}
