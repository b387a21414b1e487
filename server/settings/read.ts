/** Reads settings from the command line, the environment and a file, checks them against the table of flags, and prints --help. */
import { FLAGS } from './flags.ts';
import type { Flag, FlagType } from './flags.ts';

/** A mistake in the settings; the message is one line for the operator. */
export class SettingsError extends Error {}

export type Value = string | number | boolean | readonly string[];

/** Reads settings: command line over environment over --config file over defaults. `readFile` gives the text of the file. */
export function readSettings(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  readFile: (path: string) => string,
): ReadonlyMap<string, Value> {
  const given = givenSettings(argv, env, readFile);
  const settings = new Map<string, Value>();
  for (const flag of FLAGS) {
    const raw = given.get(flag.name) ?? flag.default;
    if (raw !== undefined && raw !== null) settings.set(flag.name, check(flag, raw));
  }
  return settings;
}

/** What the operator asked for by name, unchecked: readSettings without the defaults. */
export function givenSettings(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  readFile: (path: string) => string,
): ReadonlyMap<string, unknown> {
  const given = parseArgv(argv);
  for (const flag of FLAGS) {
    const text = env[environmentName(flag.name)];
    if (text !== undefined && !given.has(flag.name)) given.set(flag.name, text);
  }
  const file = given.get('config');
  for (const [name, value] of typeof file === 'string' ? parseFile(file, readFile) : []) if (!given.has(name)) given.set(name, value);
  return given;
}

const environmentName = (name: string): string => `PARLEY_${name.toUpperCase().replaceAll('-', '_')}`;

function flagNamed(name: string, where: string): Flag {
  const flag = FLAGS.find((candidate) => candidate.name === name);
  if (!flag) throw new SettingsError(`${where}: there is no such setting; see --help`);
  return flag;
}

/** --name value, --name=value, --switch, --no-switch. */
function parseArgv(argv: readonly string[]): Map<string, unknown> {
  const given = new Map<string, unknown>();
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i] ?? '';
    const [, key = '', inline] = /^--([^=]+)(?:=([\s\S]*))?$/.exec(argument) ?? [];
    if (key === '') throw new SettingsError(`${argument}: settings begin with --; see --help`);
    const negated = key.startsWith('no-') && FLAGS.some(({ name, type }) => name === key.slice(3) && type === 'boolean');
    const flag = flagNamed(negated ? key.slice(3) : key, `--${key}`);
    const next = argv[i + 1];
    if (negated) given.set(flag.name, false);
    else if (inline !== undefined) given.set(flag.name, inline);
    else if (flag.type === 'boolean') given.set(flag.name, true);
    else if (next === undefined || next.startsWith('--')) throw new SettingsError(`--${key} needs a value`);
    else given.set(flag.name, argv[++i]);
  }
  return given;
}

function parseFile(path: string, readFile: (path: string) => string): [string, unknown][] {
  let value: unknown;
  try {
    value = JSON.parse(readFile(path));
  } catch (error) {
    throw new SettingsError(`--config ${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SettingsError(`--config ${path}: must hold a JSON object`);
  return Object.entries(value).map(([key, entry]) => [flagNamed(key.replaceAll('_', '-'), `'${key}' in ${path}`).name, entry]);
}

function check(flag: Flag, raw: unknown): Value {
  const wrong = (why: string): SettingsError => new SettingsError(`--${flag.name} ${String(raw)}: ${why}`);
  const value = convert(flag, raw);
  if (value === undefined) throw wrong(`must be ${KINDS[flag.type]}`);
  if (typeof value === 'number' && (value < (flag.min ?? -Infinity) || value > (flag.max ?? Infinity))) {
    throw wrong(`must be ${flag.max === undefined ? `at least ${flag.min}` : `from ${flag.min} to ${flag.max}`}`);
  }
  if (flag.choices && !flag.choices.includes(String(value))) throw wrong(`must be one of ${flag.choices.join(', ')}`);
  return value;
}

const KINDS: Readonly<Record<FlagType, string>> = {
  string: 'text',
  int: 'an integer',
  number: 'a number',
  boolean: 'true or false',
  list: 'a comma-separated list',
};

/** The value in the flag's type; undefined when it is none. */
function convert({ type }: Flag, raw: unknown): Value | undefined {
  if (type === 'boolean')
    return new Map<unknown, boolean>([
      [true, true],
      ['true', true],
      ['1', true],
      [false, false],
      ['false', false],
      ['0', false],
    ]).get(raw);
  if (type === 'list') {
    const items = Array.isArray(raw) ? raw : typeof raw === 'string' ? raw.split(',') : undefined;
    return items?.map((item) => String(item).trim()).filter((item) => item !== '');
  }
  if (type === 'string') return typeof raw === 'string' ? raw : typeof raw === 'number' ? String(raw) : undefined;
  const number = typeof raw === 'number' ? raw : typeof raw === 'string' && raw.trim() !== '' ? Number(raw) : NaN;
  return Number.isFinite(number) && (type === 'number' || Number.isInteger(number)) ? number : undefined;
}

/** The text of --help. */
export function helpText(): string {
  const lines = ['Usage: npm start -- [settings]', '', 'Serves chat, speech and transcription, each on its own port, with the OpenAI API.'];
  for (const group of new Set(FLAGS.map((flag) => flag.group))) {
    lines.push('', `${group}:`);
    for (const flag of FLAGS.filter((candidate) => candidate.group === group)) lines.push(...describe(flag));
  }
  lines.push('', 'Each can also be set in the environment, as PARLEY_ and its name in capitals (PARLEY_PORT=4000), or in a --config file.');
  return lines.join('\n');
}

function describe({ name, type, value, choices, help, default: standard }: Flag): string[] {
  const placeholder = type === 'boolean' ? '' : ` ${choices?.join('|') ?? value ?? 'VALUE'}`;
  const head = `  --${standard === true ? `no-${name}` : name}${placeholder}`;
  const isShown = standard !== undefined && standard !== '' && type !== 'boolean';
  const text = `${standard === true ? 'do not ' : ''}${help}${isShown ? ` (${String(standard)})` : ''}`;
  return head.length < 34 ? [`${head.padEnd(34)} ${text}`] : [head, `${''.padEnd(34)} ${text}`];
}
