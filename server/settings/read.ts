/** Reads settings from the command line, the environment and a file, checks them against the table of flags, and prints --help. */
import { SENDABLE, isSendable } from '../access/keys.ts';
import { DEFAULTS, FLAGS, defaultOf, placeholder } from './flags.ts';
import type { Flag, SettingKey, Settings } from './flags.ts';

/** A mistake in the settings; the message is one line for the operator. */
export class SettingsError extends Error {}

/** A setting's value, in the type of its row. */
export type Value = string | number | boolean | readonly string[] | readonly number[];

/** Reads settings: command line over environment over --config file over defaults. `readFile` gives the text of the file. */
export function readSettings(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  readFile: (path: string) => string,
): Settings {
  const given = gather(argv, env, readFile);
  const checked = FLAGS.flatMap((flag) => {
    const found = given.get(flag.key);
    return isGiven(found) ? [[flag.key, check(flag, found)]] : [];
  });
  // `check` gives each value the type of its row.
  return { ...DEFAULTS, ...Object.fromEntries(checked) } as Settings;
}

/** Settings that the operator gave, unchecked: readSettings without the defaults. */
export function givenSettings(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  readFile: (path: string) => string,
): ReadonlyMap<SettingKey, Given> {
  return new Map([...gather(argv, env, readFile)].filter(([, found]) => isGiven(found)));
}

/** A setting's value as it was given, and the name that it had there: `--port`, `PARLEY_PORT`, `'port' in FILE`. */
export interface Given {
  readonly raw: unknown;
  readonly place: string;
}

/** Whether a setting was given; null in a file counts as left out. */
const isGiven = (found: Given | undefined): found is Given => found?.raw !== undefined && found.raw !== null;

/** Returns how an error names a setting, with its value if that is to be shown: as where it was given, or else by its flag. */
export type Called = (key: SettingKey, value?: Value) => string;

/** Returns how errors name these settings. */
export function calledAs(given: ReadonlyMap<SettingKey, Given>): Called {
  return (key, value) => {
    const place = given.get(key)?.place ?? `--${nameOf(key)}`;
    return value === undefined ? place : withValue(place, value);
  };
}

const withValue = (place: string, value: unknown): string => `${place}${place.startsWith('PARLEY_') ? '=' : ' '}${String(value)}`;

function gather(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  readFile: (path: string) => string,
): ReadonlyMap<SettingKey, Given> {
  const given = parseArgv(argv);
  for (const flag of FLAGS) {
    const place = variablesOf(flag).find((variable) => env[variable] !== undefined);
    if (place !== undefined && !given.has(flag.key)) given.set(flag.key, { raw: env[place], place });
  }
  const file = given.get('config')?.raw;
  for (const [key, raw] of typeof file === 'string' && file !== '' ? parseFile(file, readFile, calledAs(given)('config', file)) : [])
    if (!given.has(key)) given.set(key, { raw, place: `'${nameOf(key)}' in ${String(file)}` });
  return given;
}

const nameOf = (key: SettingKey): string => FLAGS.find((flag) => flag.key === key)!.name;

/** The environment variables that set a flag: by its name, and by its other one if it has one. */
export const variablesOf = ({ name, aka }: Flag): string[] =>
  [name, ...(aka === undefined ? [] : [aka])].map((one) => `PARLEY_${one.toUpperCase().replaceAll('-', '_')}`);

function flagNamed(name: string, where: string): Flag {
  const flag = FLAGS.find((candidate) => candidate.name === name || candidate.aka === name);
  if (!flag) throw new SettingsError(`${where}: there is no such setting; see --help`);
  return flag;
}

/** Parses --name value, --name=value, --switch and --no-switch. */
function parseArgv(argv: readonly string[]): Map<SettingKey, Given> {
  const given = new Map<SettingKey, Given>();
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i] ?? '';
    const [, key = '', inline] = /^--([^=]+)(?:=([\s\S]*))?$/.exec(argument) ?? [];
    if (key === '') throw new SettingsError(`${argument}: settings begin with --; see --help`);
    const negated = key.startsWith('no-') && FLAGS.some(({ name, type }) => name === key.slice(3) && type === 'boolean');
    const flag = flagNamed(negated ? key.slice(3) : key, `--${key}`);
    const next = argv[i + 1];
    // The value would be ignored, and `--no-autotune=false` mean the opposite.
    if (negated && inline !== undefined) throw new SettingsError(`--${key} takes no value; --${flag.name}=false says the same`);
    const earlier = flag.type === 'list' && flag.repeats ? given.get(flag.key) : undefined;
    const take = (raw: unknown): unknown =>
      given.set(flag.key, { raw: earlier ? `${String(earlier.raw)},${String(raw)}` : raw, place: `--${key}` });
    if (negated) take(false);
    else if (inline !== undefined) take(inline);
    else if (flag.type === 'boolean') take(true);
    else if (next === undefined || next.startsWith('--')) throw new SettingsError(`--${key} needs a value`);
    else take(argv[++i]);
  }
  return given;
}

/** Parses the --config file; `called` names the setting that names it. */
function parseFile(path: string, readFile: (path: string) => string, called: string): [SettingKey, unknown][] {
  let value: unknown;
  try {
    value = JSON.parse(readFile(path));
  } catch (error) {
    throw new SettingsError(`${called}: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new SettingsError(`${called}: must hold a JSON object`);
  return Object.entries(value).map(([key, entry]) => [flagNamed(key.replaceAll('_', '-'), `'${key}' in ${path}`).key, entry]);
}

function check(flag: Flag, { raw, place }: Given): Value {
  const words = 'words' in flag ? (flag.words ?? []) : [];
  const must = (what: string): SettingsError =>
    new SettingsError(`${withValue(place, raw)}: must be ${[...words, ''].join(' or ')}${what}`);
  // An empty API key would let nobody in, and an empty path is the working folder.
  if (raw === '' && flag.type !== 'list') throw new SettingsError(`${place} is empty; give it a value or leave it out`);
  if (typeof raw === 'string' && words.includes(raw)) return raw;
  if ((flag.key === 'apiKey' || flag.key === 'adminKey') && !isSendable(String(raw))) throw new SettingsError(`${place}: ${SENDABLE}`);
  const value = convert(flag, raw);
  if (value === undefined) throw must(KINDS[flag.type] + unitOf(flag));
  if ('min' in flag || 'max' in flag) {
    const { min = -Infinity, max = Infinity } = flag;
    const isWithin = [value].flat().every((one) => Number(one) >= min && Number(one) <= max);
    if (!isWithin) throw must((max === Infinity ? `at least ${min}` : `from ${min} to ${max}`) + unitOf(flag));
  }
  if (flag.type === 'string' && flag.choices && !flag.choices.includes(String(value))) throw must(`one of ${flag.choices.join(', ')}`);
  return value;
}

const KINDS: Readonly<Record<Flag['type'], string>> = {
  string: 'text',
  int: 'an integer',
  number: 'a number',
  ints: 'a comma-separated list of integers',
  boolean: 'true or false',
  list: 'a comma-separated list',
};

/** Units by placeholder, as an error names them. */
const UNITS: Readonly<Record<string, string>> = { GIB: ' (GiB, without a unit)', SECONDS: ' (seconds, without a unit)' };

const unitOf = ({ value }: Flag): string => UNITS[value ?? ''] ?? '';

const BOOLEANS: ReadonlyMap<unknown, boolean> = new Map([
  ...([true, 'true', '1'] as const).map((raw) => [raw, true] as const),
  ...([false, 'false', '0'] as const).map((raw) => [raw, false] as const),
]);

/** Converts a value to the flag's type; undefined if it is not valid. */
function convert({ type }: Flag, raw: unknown): Value | undefined {
  switch (type) {
    case 'boolean':
      return BOOLEANS.get(raw);
    case 'list':
      return items(raw)?.map((item) => String(item).trim()).filter((item) => item !== ''); // prettier-ignore
    case 'ints': {
      const numbers = items(raw)?.map(toNumber);
      return numbers?.every((number) => Number.isInteger(number)) ? numbers : undefined;
    }
    case 'string':
      return typeof raw === 'string' ? raw : typeof raw === 'number' ? String(raw) : undefined;
    case 'int':
    case 'number': {
      const number = toNumber(raw);
      return Number.isFinite(number) && (type === 'number' || Number.isInteger(number)) ? number : undefined;
    }
  }
}

/** Elements of a list: separated by commas, or an array of strings and numbers in a file. */
function items(raw: unknown): readonly (string | number)[] | undefined {
  if (typeof raw === 'string') return raw.split(',');
  const isItem = (item: unknown): item is string | number => typeof item === 'string' || typeof item === 'number';
  return Array.isArray(raw) && raw.every(isItem) ? raw : undefined;
}

function toNumber(raw: unknown): number {
  return typeof raw === 'number' ? raw : typeof raw === 'string' && raw.trim() !== '' ? Number(raw) : NaN;
}

/** The text of --help. */
export function helpText(): string {
  const lines = ['Usage: npm start -- [settings]', '', 'Serves chat, speech and transcription, each on its own port, with the OpenAI API.'];
  for (const heading of new Set(FLAGS.map((flag) => flag.heading))) {
    lines.push('', `${heading}:`);
    for (const flag of FLAGS.filter((candidate) => candidate.heading === heading)) lines.push(...describe(flag));
  }
  lines.push('', 'Each can also be set in the environment, as PARLEY_ and its name in capitals (PARLEY_PORT=4000), or in a --config file.');
  lines.push(
    "'npx parley' has more commands: pull, models, rm and run are about models, adapters and doctor about this machine; 'npx parley pull --help' says what a MODEL may be.",
  );
  return lines.join('\n');
}

function describe(flag: Flag): string[] {
  const { name, help, default: standard } = flag;
  const head = `  --${standard === true ? `no-${name}` : name}${placeholder(flag)}`;
  const shown = defaultOf(flag);
  const text = `${standard === true ? 'do not ' : ''}${help}${shown === undefined ? '' : ` (${shown})`}`;
  return head.length < 34 ? [`${head.padEnd(34)} ${text}`] : [head, `${''.padEnd(34)} ${text}`];
}
