/**
 * Writes the tables that documents take from the code: `npx tsx test/tools/tables.ts`. The kernels in shaders/README.md come from the
 * declarations and the shaders' header comments, the flags in docs/flags.md from engine/config.ts and server/settings/flags.ts, the families in
 * docs/formats.md from engine/model-types.ts, the names of voices in docs/audio.md from engine/util/voices.ts, what is recommended in
 * docs/models.md and README.md from models/recommended.json, and where it runs in docs/platforms.md from docs/platforms.json. The architecture
 * test fails when a document's tables are not what this writes.
 */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { resolveConfig } from '../../engine/config.ts';
import type { Kernel } from '../../engine/gpu/kernel.ts';
import { MODEL_TYPES } from '../../engine/model-types.ts';
import { tokensThatFit } from '../../engine/runner/memory-plan.ts';
import { VOICE_TABLE } from '../../engine/util/voices.ts';
import { PRESETS, RECOMMENDED_MODELS, downloadBytes, formatBytes, presetBytes, presetModels } from '../../sources/index.ts';
import type { Preset } from '../../sources/index.ts';
import { FLAGS, defaultOf, placeholder } from '../../server/settings/flags.ts';
import { isKernel } from '../support/kernel-declaration.ts';
import type { PlatformRow } from './platform-report.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BEGIN = '<!-- table: test/tools/tables.ts -->';
const END = '<!-- end of table -->';

/** Every exported kernel of engine/ops with the file that declares it. */
export async function collectKernels(): Promise<readonly { kernel: Kernel; op: string }[]> {
  const files = readdirSync(join(ROOT, 'engine', 'ops')).filter((file) => file.endsWith('.ts'));
  const found = files.sort().map(async (op) => {
    const module = (await import(pathToFileURL(join(ROOT, 'engine', 'ops', op)).href)) as Record<string, unknown>;
    return Object.values(module)
      .filter(isKernel)
      .map((kernel) => ({ kernel, op }));
  });
  return (await Promise.all(found)).flat();
}

async function shaderTable(): Promise<string> {
  const kernels = await collectKernels();
  const shaders = readdirSync(join(ROOT, 'shaders'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.wgsl'))
    .map((entry) => relative(join(ROOT, 'shaders'), join(entry.parentPath, entry.name)).split(sep).join('/'));
  const rows = shaders.sort().map((file) => {
    const declared = kernels.filter(({ kernel }) => kernel.spec.file === file);
    const ops = [...new Set(declared.map(({ op }) => `ops/${op}`))].join(', ') || '(fragment)';
    const choices = new Set(declared.flatMap(({ kernel: { spec } }) => [...(spec.consts ?? []), ...Object.keys(spec.overrides ?? {})]));
    return `| \`${file}\` | ${firstSentence(file)} | ${ops} | ${[...choices].map((choice) => `\`${choice}\``).join(' ')} |`;
  });
  return ['| shader | computes | used by | chosen per variant |', '|---|---|---|---|', ...rows].join('\n');
}

/** First sentence of the comment that opens a shader. */
function firstSentence(file: string): string {
  const lines = readFileSync(join(ROOT, 'shaders', file), 'utf8').split('\n');
  const end = lines.findIndex((line) => !line.startsWith('//'));
  const comment = lines.slice(0, end).map((line) => line.replace(/^\/+\s?/, '')).join(' '); // prettier-ignore
  return comment
    .split(/(?<=[.:;])\s|\s{2,}/)[0]!
    .replaceAll('|', '\\|')
    .replace(/[.:;]$/, '');
}

function flagTable(): string {
  const rows = FLAGS.map((flag) => {
    const { name, type, help, default: standard, heading } = flag;
    const words = defaultOf(flag);
    const shown = type === 'boolean' ? (standard ? 'on' : 'off') : words === undefined ? '' : 'defaultIs' in flag ? words : `\`${words}\``;
    const linked = [shown, help].map((text) => text.replace(/docs\/([\w-]+\.md)/g, '[$&]($1)'));
    const cells = [`\`--${name}${placeholder(flag)}\``, ...linked, heading.replace(/ \(.*/, '')];
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  });
  return ['| flag | default | what it does | group |', '|---|---|---|---|', ...rows].join('\n');
}

/** A row for each family. */
function modelTable(): string {
  const families = new Map<string, { readonly task: string; readonly types: string[] }>();
  for (const [type, { task, family }] of Object.entries(MODEL_TYPES)) {
    const known = families.get(family) ?? { task, types: [] };
    known.types.push(`\`${type}\``);
    families.set(family, known);
  }
  const rows = [...families].map(
    ([family, { task, types }]) => `| ${task} | ${types.join(', ')} | [MODEL.md](../engine/models/${family}/MODEL.md) |`,
  );
  return ['| listener | model_type | read more |', '|---|---|---|', ...rows].join('\n');
}

/** A row for each name that stands for voices: those of the bundled model, and of the published Kokoro. A bundled voice's name has one choice, for models without it. */
function voiceTable(): string {
  const rows = [...VOICE_TABLE].map(([name, choices]) => {
    const cells = [name, ...choices].map((text) => `\`${text}\``);
    if (choices.length === 1) cells.splice(1, 0, 'itself');
    return `| ${cells.join(' | ')} |`;
  });
  return ['| name | with the bundled model | with published Kokoro |', '|---|---|---|', ...rows].join('\n');
}

/** A row for each place where somebody has tried, or should. */
function platformTable(): string {
  const rows = (JSON.parse(readFileSync(join(ROOT, 'docs', 'platforms.json'), 'utf8')) as PlatformRow[]).map((row) => {
    const { where, adapter, date, cases = 'not run', models = 'not run', speed = 'not measured', note = '' } = row;
    return `| ${(date === undefined ? [where, '', 'nobody has tried', '', '', '', ''] : [where, adapter, date, cases, models, speed, note]).join(' | ')} |`;
  });
  const heads = ['where', 'adapter', 'date', 'kernel cases right', 'models', 'chat', 'how'];
  return [`| ${heads.join(' | ')} |`, `|${'---|'.repeat(heads.length)}`, ...rows].join('\n');
}

const TASKS = ['chat', 'speech', 'transcription'] as const;
const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/** A row for each preset: its models, and what they take. */
function presetTable(): string {
  const rows = Object.entries(PRESETS).map(([name, preset]) => {
    const models = presetModels(preset);
    const bytes = sum(models.map((model) => downloadBytes(model) ?? 0));
    const memory = (['gpu', 'software'] as const).map((adapter) =>
      formatBytes(sum(models.map((model) => presetBytes(preset, model, adapter)))),
    );
    return `| \`--preset ${name}\` | ${preset.for} | ${TASKS.map((task) => preset[task]).join(' | ')} | ${[formatBytes(bytes), ...memory, presetRoom(preset)].join(' | ')} |`;
  });
  const heads = ['preset', 'for', ...TASKS, 'download', 'on a GPU', 'in software', 'room for conversations'];
  return [`| ${heads.join(' | ')} |`, `|${'---|'.repeat(heads.length)}`, ...rows].join('\n');
}

/** How many tokens, in hundreds, of conversations have room beside a preset's models on the card that it is for; nothing where it is for any adapter. */
function presetRoom(preset: Preset): string {
  const [, gigabytes] = /(\d+) GB$/.exec(preset.for) ?? [];
  if (gigabytes === undefined) return '';
  const models = presetModels(preset);
  const { id, task, kv } = models.find((model) => model.kv)!;
  const bytesOf = (wanted: boolean): number =>
    sum(models.map((model) => ((model.task === 'chat') === wanted ? presetBytes(preset, model, 'gpu') : 0)));
  const {
    memFractionStatic: fraction,
    pageSize,
    maxRunningRequests: maxRunning,
    contextLength: context,
  } = resolveConfig(preset.settings ?? {});
  const memory = { bytes: Number(gigabytes) * 1e9, from: '' };
  const layers = Array.from({ length: kv!.layers }, () => kv!);
  const pages = { kv: { layers, pageSize, dtype: 'f16' as const }, maxRunning, context };
  const demand = { id, task, weights: bytesOf(true), activations: 0, pages };
  const tokens = tokensThatFit({ memory, fraction, maxBindingBytes: Infinity, taken: bytesOf(false) }, demand);
  return `${(Math.floor(tokens / 100) * 100).toLocaleString('en')} tokens`;
}

/** A row for each recommended model. */
function recommendedTable(): string {
  const rows = RECOMMENDED_MODELS.map((model) => {
    const { id, task, sources, memory, licence, terms, sampling = {}, good, bad } = model;
    const bytes = downloadBytes(model);
    const from = sources.map(({ from: source, tried }) => {
      const where = source.endsWith('.json') ? `[packages](../${source})` : `\`${source.replace(/@[0-9a-f]{40}/, '')}\``;
      return tried === undefined ? where : `${where} (run ${tried})`;
    });
    const cells = [
      `\`${id}\``,
      task,
      bytes === undefined ? '' : formatBytes(bytes),
      formatBytes(memory.gpu),
      formatBytes(memory.software),
      `${licence}${terms ? ', to be accepted on the hub' : ''}`,
      good,
      bad,
      Object.entries(sampling).map(([name, value]) => `${name} ${value}`).join(', '), // prettier-ignore
      from.join(', '),
    ];
    return `| ${cells.join(' | ')} |`;
  });
  const heads = ['model', 'task', 'download', 'on a GPU', 'in software', 'licence', 'good at', 'not at', 'sampling', 'from'];
  return [`| ${heads.join(' | ')} |`, `|${'---|'.repeat(heads.length)}`, ...rows].join('\n');
}

/** Each document's tables, in their order. */
const TABLES = {
  'README.md': [presetTable],
  'docs/audio.md': [voiceTable],
  'docs/flags.md': [flagTable],
  'docs/formats.md': [modelTable],
  'docs/models.md': [presetTable, recommendedTable],
  'docs/platforms.md': [platformTable],
  'shaders/README.md': [shaderTable],
} as const;
type TableDocument = keyof typeof TABLES;

/** Documents with tables, below the repository root. */
export const DOCUMENTS = Object.keys(TABLES) as readonly TableDocument[];

/** A document with its tables replaced by the present ones. */
export async function withTable(document: TableDocument): Promise<string> {
  let text = readFileSync(join(ROOT, document), 'utf8');
  let at = 0;
  for (const make of TABLES[document]) {
    const from = text.indexOf(BEGIN, at) + BEGIN.length;
    const to = text.indexOf(END, from);
    if (from < at + BEGIN.length || to < from) throw new Error(`${document} lacks the markers ${BEGIN} and ${END}`);
    const table = await make();
    text = `${text.slice(0, from)}\n${table}\n${text.slice(to)}`;
    at = from + table.length + END.length;
  }
  return text;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const document of DOCUMENTS) writeFileSync(join(ROOT, document), await withTable(document));
