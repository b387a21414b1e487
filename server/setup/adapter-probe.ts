/**
 * Entry of a child process of `parley adapters`, which prints a line of JSON for each adapter that its environment offers. `--list` only names them; `--speed
 * [NAME]` measures one; `--memory [NAME [BYTES]]` reports the memory of one, or takes the operator's number. A bad driver may crash the process, which the parent
 * then reports.
 */
import { probeAdapter, probeMemory } from '../../engine/index.ts';
import type { AdapterReport } from '../../engine/index.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';

/** One line of the child's output. */
export type ProbeLine =
  | { readonly type: 'listed'; readonly names: readonly string[]; readonly standard: string | undefined }
  | { readonly type: 'adapter'; readonly name: string; readonly backend: string; readonly report: AdapterReport }
  | AdapterMemoryLine
  | { readonly type: 'failed'; readonly name: string; readonly backend: string; readonly problem: string };

/** The adapter that a name selects, or the default one, and the memory that a program may count on. */
export interface AdapterMemoryLine {
  readonly type: 'memory';
  readonly name: string;
  readonly bytes: number;
  readonly from: string;
  readonly software: boolean;
}

const print = (line: ProbeLine): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
/** Prints what `work` finds out about an adapter, or why it cannot. */
const printOf = async (name: string, backend: string, work: () => Promise<ProbeLine>): Promise<void> => {
  try {
    print(await work());
  } catch (error) {
    print({ type: 'failed', name, backend, problem: error instanceof Error ? error.message : String(error) });
  }
};
const platform = createNodePlatform();
const listed = (await platform.adapters?.()) ?? [];
const [what, name = '', given = ''] = process.argv.slice(2);
if (what === '--memory') {
  await printOf(name, '', async () => {
    const { info, bytes, from } = await probeMemory(platform, name || undefined, given === '' ? undefined : Number(given));
    return { type: 'memory', name: info.name, bytes, from, software: info.software };
  });
} else if (what === '--speed') {
  await printOf(name, '', async () => ({ type: 'adapter', name, backend: '', report: await probeAdapter(platform, name || undefined) }));
} else if (what === '--list') {
  const standard = await platform.requestAdapter({}).then(
    ({ info }) => info.description,
    () => undefined,
  );
  print({ type: 'listed', names: listed.map(({ name }) => name), standard });
} else {
  for (const [index, { name, backend }] of listed.entries()) {
    const twin = listed.slice(0, index).filter((other) => other.name === name).length;
    const report = (): Promise<AdapterReport> => probeAdapter(platform, twin === 0 ? name : `${name}#${twin}`);
    await printOf(name, backend, async () => ({ type: 'adapter', name, backend, report: await report() }));
  }
}
process.exit(0);
