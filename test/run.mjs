/**
 * `npm test [-- filter ...]`: set-up, type check, all tests; `npm run bench [-- name [part of a shape]]`: set-up and benchmarks. The last
 * line of a test run is `N passed, N failed, N skipped`, for CI.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join, sep } from 'node:path';
import { ROOT, buildPlayground, installPackages, requireNode, withSetup } from '../server/setup/setup.mjs';
import { ensureAdapter } from '../server/setup/drivers.mjs';
import { ensureChromium } from './setup-chromium.mjs';

await withSetup(() => {
  const [first, ...rest] = process.argv.slice(2);
  const bench = first === '--bench';
  requireNode();
  installPackages({ dev: true });
  const { name, environment } = ensureAdapter();
  Object.assign(process.env, environment);
  if (!bench) ensureChromium();
  // The fuzzer asks for the page's files too.
  if (!bench || rest[0] === 'fuzz') buildPlayground();
  console.log(`adapter: ${name}`);
  process.exitCode = bench ? runBenches(rest) : runTests(process.argv.slice(2));
});

/** Runs an npm package's command in this process's terminal; returns its exit status. */
function runTool(path, ...args) {
  return spawnSync(process.execPath, [join(ROOT, 'node_modules', path), ...args], { cwd: ROOT, stdio: 'inherit' }).status ?? 1;
}

/** `name` is the beginning of a benchmark's; the rest goes to it (a part of the shapes' names). */
function runBenches([name = '', ...rest]) {
  const folder = join(ROOT, 'test', 'bench');
  const known = readdirSync(folder).filter((file) => file.endsWith('.bench.ts'));
  // These take minutes: only when asked for.
  const byName = ['audio-memory.bench.ts', 'fuzz.bench.ts', 'soak.bench.ts'];
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

function runTests(filters) {
  console.log('type check');
  if (runTool('typescript/bin/tsc', '-p', 'tsconfig.json') !== 0) return 1;
  // Who asks for a few tests is at work on them.
  if (filters.length === 0) {
    console.log('format check');
    if (runTool('prettier/bin/prettier.cjs', '--log-level=warn', ...argumentsOf('format:check')) !== 0) return 1;
    console.log('lint');
    if (runTool('oxlint/bin/oxlint', ...argumentsOf('lint')) !== 0) return 1;
  }
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
