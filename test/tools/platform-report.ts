/**
 * Adds a row to the table of where Parley runs: `npx tsx test/tools/platform-report.ts < report.md` reads what the Device page's "Copy report" copied, puts its row
 * into docs/platforms.json, in the place of an older one of the same browser, system and adapter, and writes the tables.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A row of docs/platforms.json. */
export interface PlatformRow {
  /** Such as "Firefox 153.7, Linux". */
  readonly where: string;
  readonly adapter: string;
  /** ISO date of the run, or undefined where nobody has tried. */
  readonly date?: string;
  /** Kernel cases that were right. */
  readonly cases?: string;
  /** Tasks whose models ran. */
  readonly models?: string;
  /** Of a chat with the bundled model. */
  readonly speed?: string;
  readonly note?: string;
}

const FILE = fileURLToPath(new URL('../../docs/platforms.json', import.meta.url));
/** A machine of more load than this did other work. */
const BUSY = 1;

/** Looked for in this order: most browsers say that they are others too. */
const BROWSERS = [['Edge', /Edg\/([\d.]+)/], ['Firefox', /Firefox\/([\d.]+)/], ['Chrome', /Chrome\/([\d.]+)/], ['Safari', /Version\/([\d.]+).*Safari/]] as const; // prettier-ignore
const SYSTEMS = [['Android', /Android/], ['iOS', /iPhone|iPad/], ['Windows', /Windows/], ['macOS', /Macintosh/], ['Linux', /Linux/]] as const; // prettier-ignore

/** The row that a report of the Device page gives; throws where the text is none. */
export function rowOfReport(report: string): PlatformRow {
  const field = (name: string): string => new RegExp(`^- ${name}: (.*)$`, 'm').exec(report)?.[1]?.trim() ?? '';
  const told = (...names: string[]): string => names.map(field).filter((value) => value !== '' && value !== 'not told').join(' '); // prettier-ignore
  const agent = field('browser');
  if (!report.includes('## Parley device report') || agent === '') {
    throw new Error('this is no report of the Device page: it lacks its heading or the line of the browser');
  }
  const [browser = agent, version = ''] =
    BROWSERS.flatMap(([name, pattern]) => {
      const found = pattern.exec(agent);
      return found ? [[name, found[1]!]] : [];
    })[0] ?? [];
  const system = SYSTEMS.find(([, pattern]) => pattern.test(agent))?.[0] ?? 'system not told';
  const software = field('kind').startsWith('software') ? ' (software)' : '';
  const [models, speed, cases] = [told('models loaded'), told('last answer'), casesOf(report)];
  return {
    where: `${`${browser} ${version}`.trim()}, ${system}`,
    adapter: `${told('device') || told('vendor', 'architecture') || 'not told'}${software}`,
    date: field('date'),
    ...(cases !== undefined && { cases }),
    ...(models !== '' && models !== 'none' && { models }),
    ...(speed !== '' && { speed }),
  };
}

/** What the self-test's verdict says. */
function casesOf(report: string): string | undefined {
  const all = /^All (\d+) kernel cases agree/m.exec(report);
  if (all) return `${all[1]} of ${all[1]}`;
  const wrong = /^(\d+) of (\d+) kernel cases differ/m.exec(report);
  if (wrong) return `${Number(wrong[2]) - Number(wrong[1])} of ${wrong[2]}`;
  const stopped = /^Stopped after (\d+) cases, all right/m.exec(report);
  return stopped ? `the first ${stopped[1]}` : undefined;
}

/** The rows with this one in its place: an older one's, else the last. */
export function withRow(rows: readonly PlatformRow[], row: PlatformRow): PlatformRow[] {
  const product = ({ where }: PlatformRow): string => where.replace(/ [\d.]+(?=,)/, '');
  const at = rows.findIndex((other) => product(other) === product(row) && (other.adapter === row.adapter || other.date === undefined));
  return at < 0 ? [...rows, row] : rows.with(at, row);
}

/** The rows with speeds, in ms per token by the first word of a row's `where`, that were measured on a machine of this load. */
export function withSpeeds(rows: readonly PlatformRow[], speeds: ReadonlyMap<string, number>, load: number): PlatformRow[] {
  const beside = load >= BUSY ? `, at load ${load.toFixed(0)}` : '';
  return rows.map((row) => {
    const ms = row.date === undefined ? undefined : speeds.get(/^\w+/.exec(row.where)![0]);
    return ms === undefined ? row : { ...row, speed: `${(1000 / ms).toFixed(0)} tokens/s${beside}` };
  });
}

/** Puts speeds into the table. */
export function addSpeeds(speeds: ReadonlyMap<string, number>, load: number): void {
  rewrite((rows) => withSpeeds(rows, speeds, load));
}

function rewrite(change: (rows: readonly PlatformRow[]) => readonly PlatformRow[]): void {
  const rows = JSON.parse(readFileSync(FILE, 'utf8')) as PlatformRow[];
  writeFileSync(FILE, `${JSON.stringify(change(rows), null, 2)}\n`);
  execFileSync(process.execPath, ['--import', 'tsx', fileURLToPath(new URL('./tables.ts', import.meta.url))], { stdio: 'inherit' });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const row = rowOfReport(readFileSync(0, 'utf8'));
  rewrite((rows) => withRow(rows, row));
}
