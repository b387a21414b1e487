/** A checkpoint some of whose matrices are read as others, each of them runs of one matrix's rows. */
import { product, sizeOf } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import type { Checkpoint, TensorInfo } from '../weights/checkpoint.ts';

/** Rows of a stored matrix, in the order in which they are read. */
export interface GatheredRows {
  readonly source: string;
  readonly runs: readonly Range[];
}

/** The checkpoint with these tensors, by name, instead of the matrices that their rows come from. */
export function gatheredCheckpoint(checkpoint: Checkpoint, tensors: ReadonlyMap<string, GatheredRows>): Checkpoint {
  const sources = new Set([...tensors.values()].map(({ source }) => source));
  const stored = (name: string, elements: Range, into?: Uint8Array): Promise<Uint8Array> | undefined => {
    const gathered = tensors.get(name);
    if (!gathered) return checkpoint.stored!(name, elements, into);
    const parts = partsOf(gathered, elements, widthOf(checkpoint, gathered)).map((part) => checkpoint.stored!(gathered.source, part));
    const found = parts.filter((part) => part !== undefined);
    return found.length < parts.length ? undefined : Promise.all(found).then(joinedBytes);
  };
  const blocks = async (name: string, rows: Range, into?: Uint8Array): Promise<Uint8Array> => {
    const gathered = tensors.get(name);
    if (!gathered) return checkpoint.blocks!(name, rows, into);
    return joinedBytes(await Promise.all(partsOf(gathered, rows, 1).map((part) => checkpoint.blocks!(gathered.source, part))));
  };
  return {
    names: () => [...checkpoint.names().filter((name) => !sources.has(name)), ...tensors.keys()],
    tensor(name) {
      const gathered = tensors.get(name);
      if (!gathered) return checkpoint.tensor(name);
      const info = checkpoint.tensor(gathered.source);
      return info && ({ ...info, shape: [rowsOf(gathered), ...info.shape.slice(1)] } satisfies TensorInfo);
    },
    async read(name, elements) {
      const gathered = tensors.get(name);
      if (!gathered) return checkpoint.read(name, elements);
      const width = widthOf(checkpoint, gathered);
      const range = elements ?? { from: 0, to: rowsOf(gathered) * width };
      const parts = partsOf(gathered, range, width).map((part) => checkpoint.read(gathered.source, part));
      return joined(await Promise.all(parts), new Float32Array(sizeOf(range)));
    },
    ...(checkpoint.blocks && { blocks }),
    ...(checkpoint.stored && { stored }),
    ...(checkpoint.random && { random: (name: string) => (tensors.has(name) ? undefined : checkpoint.random!(name)) }),
    readIds: (name) => checkpoint.readIds(name),
    close: () => checkpoint.close(),
  };
}

function rowsOf({ runs }: GatheredRows): number {
  return runs.reduce((sum, run) => sum + sizeOf(run), 0);
}

/** Elements of a row. */
function widthOf(checkpoint: Checkpoint, { source }: GatheredRows): number {
  return product(checkpoint.tensor(source)?.shape.slice(1) ?? []);
}

/** Elements `range` of the gathered rows, as ranges of the source's elements; `width` of them are a row. */
function partsOf({ runs }: GatheredRows, range: Range, width: number): Range[] {
  const parts: Range[] = [];
  let at = 0;
  for (const run of runs) {
    const from = Math.max(range.from, at);
    const to = Math.min(range.to, at + sizeOf(run) * width);
    const shift = run.from * width - at;
    if (from < to) parts.push({ from: from + shift, to: to + shift });
    at += sizeOf(run) * width;
  }
  return parts;
}

function joinedBytes(parts: readonly Uint8Array[]): Uint8Array {
  return joined(parts, new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0)));
}

function joined<T extends Float32Array | Uint8Array>(parts: readonly T[], into: T): T {
  let at = 0;
  for (const part of parts) {
    into.set(part, at);
    at += part.length;
  }
  return into;
}
