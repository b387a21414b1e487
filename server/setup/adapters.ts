/** `parley adapters`: lists WebGPU's adapters on this machine, their speed, and the settings that select them. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { AdapterReport } from '../../engine/index.ts';
import { driverFiles } from '../../engine/platform/node.ts';
import type { AdapterMemoryLine, ProbeLine } from './adapter-probe.ts';
import { TSX_ARGV } from '../tsx.ts';

const PROBE = fileURLToPath(new URL('./adapter-probe.ts', import.meta.url));
/** Most milliseconds of a probe: a driver may hang as well as crash. */
const PROBE_TIMEOUT_MS = 120_000;

export type { AdapterMemoryLine };

/** One adapter, as `parley adapters` lists it. */
export interface AdapterRow {
  /** Name as Dawn lists it. */
  readonly name: string;
  readonly backend: string;
  /** Driver file; undefined if the system has none. */
  readonly driver: string | undefined;
  /** Name of the adapter for --adapter and --adapters. */
  readonly choose: string;
  /** Whether it is taken when no setting names one. */
  readonly standard: boolean;
  readonly report?: AdapterReport;
  readonly problem?: string;
}

interface Found {
  readonly rows: readonly AdapterRow[];
  /** Driver files whose probe died, with the reason. */
  readonly broken: readonly { readonly driver: string; readonly problem: string }[];
}

/** Prints the adapters, as text or with --json; exits with 1 if there are none. */
export async function runAdapters(argv: readonly string[]): Promise<void> {
  if (argv.includes('--help') || argv.includes('-h')) {
    process.stdout.write(
      'Usage: parley adapters [--json]\n\nLists what WebGPU offers on this machine, how fast it is, and which settings use it.\n',
    );
    return;
  }
  const unknown = argv.find((argument) => argument !== '--json');
  if (unknown !== undefined) {
    process.stderr.write(`${unknown}: 'adapters' only takes --json\n`);
    process.exit(2);
  }
  const found = await findAdapters();
  process.stdout.write(argv.includes('--json') ? `${JSON.stringify(found, undefined, 2)}\n` : describeAdapters(found));
  process.exit(found.rows.length > 0 ? 0 : 1);
}

/** Names of the adapters that a setting may name, in the order of Dawn's list. */
export async function adapterNames(): Promise<readonly string[]> {
  const [listing] = (await probe({}, ['--list'])).lines;
  return listing?.type === 'listed' ? listing.names : [];
}

/** Probes every driver file in its own process, one after the other, so that they do not slow each other down. */
async function findAdapters(): Promise<Found> {
  const [listing] = (await probe({}, ['--list'])).lines;
  const standard = listing?.type === 'listed' ? listing.standard : undefined;
  const files: readonly (string | undefined)[] = driverFiles();
  const found: Omit<AdapterRow, 'choose' | 'standard'>[] = [];
  const broken: { driver: string; problem: string }[] = [];
  for (const driver of files.length > 0 ? files : [undefined]) {
    const { lines, problem } = await probe(driver === undefined ? {} : { VK_DRIVER_FILES: driver }, []);
    for (const line of lines) {
      if (line.type === 'adapter') found.push({ name: line.name, backend: line.backend, driver, report: line.report });
      if (line.type === 'failed') found.push({ name: line.name, backend: line.backend, driver, problem: line.problem });
    }
    if (problem !== undefined) broken.push({ driver: driver ?? 'the system', problem });
  }
  const names = found.map(({ name }) => name);
  const usual = found.findIndex(({ report }) => report?.info.name === standard);
  return { rows: found.map((row, index) => ({ ...row, choose: shortName(names, index), standard: index === usual })), broken };
}

/** The fewest leading words of a name that match this adapter only, or its name with an index. */
export function shortName(names: readonly string[], index: number): string {
  const name = names[index]!;
  const means = (part: string): number[] => names.flatMap((other, i) => (other.toLowerCase().includes(part.toLowerCase()) ? [i] : []));
  const words = name.split(' ');
  for (let count = 1; count <= words.length; count++) {
    const part = words
      .slice(0, count)
      .join(' ')
      .replace(/[,(]+$/, '');
    const meant = means(part);
    if (meant.length === 1) return part;
    if (meant.length > 0 && meant.every((i) => names[i] === name)) return `${part}#${meant.indexOf(index)}`;
  }
  return `${name}#${means(name).indexOf(index)}`;
}

/** Reads the memory of the adapter that a name selects (undefined: the default one) in a child process; `given` is the operator's number of bytes. */
export async function readAdapterMemory(
  name: string | undefined,
  given: number | undefined,
): Promise<AdapterMemoryLine | { readonly problem: string }> {
  const { lines, problem } = await probe({}, ['--memory', name ?? '', given === undefined ? '' : String(given)]);
  return lines.find((line) => line.type === 'memory') ?? { problem: failure(lines) ?? problem ?? 'the adapter says nothing of its memory' };
}

/** Measures the speed of the adapter that a name selects (undefined: the default one) in a child process. */
export async function measureAdapter(name: string | undefined): Promise<AdapterReport | { readonly problem: string }> {
  const { lines, problem } = await probe({}, ['--speed', name ?? '']);
  const found = lines.find((line) => line.type === 'adapter');
  return found?.report ?? { problem: failure(lines) ?? problem ?? 'the adapter gave no figures' };
}

const failure = (lines: readonly ProbeLine[]): string | undefined => lines.find((line) => line.type === 'failed')?.problem;

async function probe(
  environment: Readonly<Record<string, string>>,
  argv: readonly string[],
): Promise<{ readonly lines: readonly ProbeLine[]; readonly problem?: string }> {
  const child = spawn(process.execPath, [...TSX_ARGV, PROBE, ...argv], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PROBE_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  const lines: ProbeLine[] = [];
  const output = createInterface(child.stdout);
  output.on('line', (line) => {
    // Drivers may write to stdout too.
    if (line.startsWith('{')) lines.push(JSON.parse(line) as ProbeLine);
  });
  let lastWords = '';
  createInterface(child.stderr).on('line', (line) => {
    if (line.trim() !== '') lastWords = line.trim();
  });
  const [how] = await Promise.all([
    new Promise<string | undefined>((resolve) => {
      child.on('error', (error) => resolve(error.message));
      child.on('close', (code, signal) => resolve(code === 0 ? undefined : `the probe ended with ${signal ?? `exit code ${code}`}`));
    }),
    new Promise((resolve) => output.on('close', resolve)),
  ]);
  return { lines, ...(how !== undefined && { problem: lastWords ? `${how}: ${lastWords}` : how }) };
}

const INSTALL = [
  'No WebGPU adapter was found. Install a graphics driver with Vulkan (Linux), Metal (macOS) or Direct3D 12 (Windows);',
  "on Debian and Ubuntu, Mesa's software driver: apt-get install mesa-vulkan-drivers (on Debian 12 from bookworm-backports).",
  "Without one, 'npm start' unpacks a software driver into .parley/drivers, which this command then lists.",
];

/** The text of `parley adapters`. */
export function describeAdapters({ rows, broken }: Found): string {
  const lines = rows.length === 0 ? [...INSTALL] : rows.flatMap(describeRow);
  for (const { driver, problem } of broken) lines.push(`${driver}: ${problem}`);
  return `${[...lines, ...(rows.length > 0 ? ['', ...advice(rows)] : [])].join('\n')}\n`;
}

function describeRow({ name, backend, driver, standard, report, problem }: AdapterRow): string[] {
  const head = `${name}${standard ? '  (taken when no setting names one)' : ''}`;
  if (!report) return [head, `  cannot be used: ${problem}`];
  const { info, speed } = report;
  const mebibytes = (key: string): string => `${Math.round((info.limits[key] ?? 0) / 2 ** 20)} MiB`;
  return [
    head,
    `  ${info.name}; vendor ${info.vendor || 'unknown'}; ${backend}${driver === undefined ? '' : ` through ${driver}`}`,
    `  class ${info.family}${info.software ? ' (software)' : ''}; features ${info.features.join(', ') || 'none that matter here'}`,
    `  largest buffer ${mebibytes('maxBufferSize')}, bound at once ${mebibytes('maxStorageBufferBindingSize')}; ` +
      `workgroups of ${info.limits['maxComputeInvocationsPerWorkgroup']} with ${(info.limits['maxComputeWorkgroupStorageSize'] ?? 0) / 1024} KiB`,
    `  reads weights at ${speed.gigabytesPerSecond.toPrecision(3)} GB/s, multiplies matrices at ${speed.gigaflops.toPrecision(3)} GFLOP/s, ` +
      `round trip of 16 KiB ${speed.roundTripMs.toFixed(2)} ms`,
  ];
}

/** Suggests settings that use the adapters. */
function advice(rows: readonly AdapterRow[]): string[] {
  const usable = rows.filter(({ report }) => report);
  const names = usable.map(({ choose }) => choose);
  const [first] = names;
  if (first === undefined) return ['None of them can be used.'];
  const one = `--adapter "${first}" runs everything on it.`;
  if (names.length === 1) {
    return [one, `Splitting needs two; for tests, two devices on this one: --adapters "${first},${first}" --tp-size 2`];
  }
  const all = names.join(',');
  const speeds = usable.map(({ report }) => report!.speed.gigabytesPerSecond);
  const total = speeds.reduce((sum, speed) => sum + speed, 0);
  const shares = speeds.map((speed) => `${Math.round((100 * speed) / total)} %`).join(' : ');
  return [
    one,
    `--chat-adapter "${first}" --speech-adapter "${names[1]}" --transcription-adapter "${names[1]}" gives each task its own.`,
    'A model that does not fit one of them:',
    `  --adapters "${all}" --pp-size ${names.length} --pp-split auto   consecutive layers on each, here ${shares}`,
    `  --adapters "${all}" --tp-size ${names.length}   every layer over all; equal shares, so as fast as the slowest`,
  ];
}
