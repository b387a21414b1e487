/** The report of `parley bench`, and its text. */
import { EngineError } from '../../engine/index.ts';
import type { AdapterReport, AdapterSpeed, ModelInfo, ProfileEntry } from '../../engine/index.ts';
import type { EngineSupervisor } from '../engine/supervisor.ts';

/** Number of kernels that are shown. */
const SHOWN = 10;

/** Median and 99th percentile, in milliseconds. */
export interface Percentiles {
  readonly p50: number;
  readonly p99: number;
}

/** Figures of concurrent chat requests. */
export interface ClientsRow {
  readonly clients: number;
  /** Tokens per second of all prompts, from the first request to the last first token. */
  readonly prefill: number;
  /** Tokens per second of all answers, from the last first token to the end of the first answer that ended. */
  readonly decode: number;
  readonly firstToken: Percentiles;
  readonly betweenTokens: Percentiles;
}

/** Figures of concurrent speech or transcription requests. */
export interface AudioRow {
  readonly clients: number;
  /** Seconds of audio of all requests per second. */
  readonly timesRealTime: number;
  /** Milliseconds to the first audio, or to the end of a transcript. */
  readonly firstAnswer: Percentiles;
}

/** Figures of all dispatches of a kernel. */
export interface KernelRow {
  readonly label: string;
  readonly count: number;
  readonly milliseconds: number;
  /** Bytes that they read and wrote, and operations that they computed. */
  readonly bytes?: number;
  readonly operations?: number;
  /** Time for these bytes or these operations, whichever takes longer, at the speed that the adapter was measured to have; absent if it was not measured. */
  readonly expectedMilliseconds?: number;
}

/** Result of `parley bench`, which --json prints. */
export interface Report {
  readonly date: string;
  /** `numerics` only if it is not the default mode. */
  readonly model: Pick<ModelInfo, 'id' | 'task' | 'architecture' | 'parameters' | 'weightBytes' | 'format' | 'numerics'>;
  readonly adapter: AdapterReport | { readonly problem: string };
  readonly secondsToReady: number;
  /** Only of a chat model. */
  readonly promptTokens?: number;
  readonly tokens?: number;
  readonly rows: readonly ClientsRow[] | readonly AudioRow[];
  /** Kernels of a run with one client; absent if the adapter has no timestamps. */
  readonly kernels?: readonly KernelRow[];
  /** Shares of the adapter's measured speed: of its bandwidth, for reading weights for one client's tokens, and of its arithmetic, for prompts. */
  readonly shares?: { readonly weights: number; readonly arithmetic: number };
}

/** Median and 99th percentile. */
export function percentiles(values: readonly number[]): Percentiles {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}

/** Profiles the kernels while `ask` runs; undefined if the adapter has no timestamps. */
export async function profile(engine: EngineSupervisor, ask: () => Promise<unknown>): Promise<readonly ProfileEntry[] | undefined> {
  try {
    await engine.profile(true);
  } catch (error) {
    if (error instanceof EngineError && error.code === 'unsupported') return undefined;
    throw error;
  }
  await ask();
  return engine.profile(false);
}

/**
 * Rows of kernels with the time that they took, and the time that they should take at the adapter's speed; `positions` = length of the sequences that they attend
 * to.
 */
export function kernelRows(profiled: readonly ProfileEntry[], speed: AdapterSpeed | undefined, positions: number): readonly KernelRow[] {
  return profiled.map(({ label, count, milliseconds, work }) => {
    if (!work) return { label, count, milliseconds };
    const bytes = work.read + work.written + work.readAPosition * positions;
    const operations = work.operations + work.operationsAPosition * positions;
    const expected = speed && Math.max(bytes / (speed.gigabytesPerSecond * 1e6), operations / (speed.gigaflops * 1e6));
    return { label, count, milliseconds, bytes, operations, ...(expected !== undefined && { expectedMilliseconds: expected }) };
  });
}

/** The report as text. */
export function describe(report: Report): string {
  const { model, adapter, secondsToReady, kernels, shares } = report;
  const name = `${model.id} (${model.architecture}${model.format === undefined ? '' : `, ${model.format}`})`;
  const mode = model.numerics === undefined ? '' : `, numerics ${model.numerics}`;
  const size = `${one(model.parameters / 1e6)} M parameters, ${one(model.weightBytes / 2 ** 20)} MiB of weights${mode}`;
  const lines = [
    `${name}: ${size}, ready after ${one(secondsToReady)} s`,
    'speed' in adapter
      ? `${adapter.info.name}: ${one(adapter.speed.gigabytesPerSecond)} GB/s of weights read, ${one(adapter.speed.gigaflops)} GFLOP/s`
      : `the adapter could not be measured: ${adapter.problem}`,
    '',
    ...rowsOf(report),
  ];
  if (shares) {
    const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;
    lines.push('', `one client: ${percent(shares.weights)} of that in reading weights for its tokens, ${percent(shares.arithmetic)} of it in arithmetic for its prompt`); // prettier-ignore
  }
  if (kernels) lines.push('', ...kernelLines(kernels));
  return `${lines.join('\n')}\n`;
}

const one = (value: number): string => value.toFixed(1);

function rowsOf({ model, rows, promptTokens, tokens }: Report): readonly string[] {
  if (promptTokens !== undefined) {
    return [
      `prompts of ${promptTokens} tokens, answers of ${tokens}; milliseconds are median / 99th percentile`,
      '',
      ...table(
        ['clients', 'prompt tokens/s', 'first token ms', 'tokens/s', 'ms between tokens'],
        (rows as readonly ClientsRow[]).map(({ clients, prefill, firstToken, decode, betweenTokens }) => [
          String(clients), one(prefill), `${one(firstToken.p50)} / ${one(firstToken.p99)}`, one(decode), `${one(betweenTokens.p50)} / ${one(betweenTokens.p99)}`,
        ]), // prettier-ignore
      ),
    ];
  }
  const answer = model.task === 'speech' ? 'first audio ms' : 'answer ms';
  return table(
    ['clients', 'times real time', answer],
    (rows as readonly AudioRow[]).map(({ clients, timesRealTime, firstAnswer }) => [
      String(clients), one(timesRealTime), `${one(firstAnswer.p50)} / ${one(firstAnswer.p99)}`,
    ]), // prettier-ignore
  );
}

/** "at best" is what a kernel should take at the speeds above. */
function kernelLines(kernels: readonly KernelRow[]): readonly string[] {
  const sum = (of: (row: KernelRow) => number | undefined): number => kernels.reduce((all, row) => all + (of(row) ?? 0), 0);
  const total = sum(({ milliseconds }) => milliseconds);
  const best = sum(({ expectedMilliseconds }) => expectedMilliseconds);
  const shown = kernels.slice(0, SHOWN).map(({ label, count, milliseconds, bytes = 0, operations = 0, expectedMilliseconds }) => [
    `${((100 * milliseconds) / total).toFixed(1)} %`, one(milliseconds), expectedMilliseconds === undefined ? '-' : one(expectedMilliseconds),
    one(bytes / 1e6), one(operations / 1e6), String(count), label,
  ]); // prettier-ignore
  return [
    `kernels of one client, each timed on its own: ${one(total)} ms${best > 0 ? `, at best ${one(best)} ms at the speeds above` : ''}`,
    '',
    ...table(['share', 'ms', 'at best', 'MB', 'MFLOP', 'times', 'kernel'], shown),
  ];
}

/** Formats rows with columns as wide as their widest cell, right-aligned but for a last one with words. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((_, i) => Math.max(...[head, ...rows].map((row) => row[i]!.length)));
  const isLast = (i: number): boolean => i === head.length - 1 && rows.some((row) => /[a-z]/.test(row[i]!));
  return [head, ...rows].map((row) => row.map((cell, i) => (isLast(i) ? cell : cell.padStart(widths[i]!))).join('  '));
}
