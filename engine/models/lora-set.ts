/** The LoRA adapters of a model as its layers load them: what all of them add to a matrix, stacked for the kernels. */
import type { Device } from '../gpu/device.ts';
import { loraBytes, loraColumns, uploadLora } from '../ops/lora.ts';
import type { LoraMatrices, LoraWeight } from '../ops/lora.ts';
import type { Platform } from '../platform/platform.ts';
import type { Json } from '../util/json.ts';
import { sizeOf } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import { loraError } from '../weights/lora/lora-adapter.ts';
import type { LoraAdapter, LoraModule, LoraSource, LoraTensor } from '../weights/lora/lora-adapter.ts';
import { openLora } from '../weights/lora/open-lora.ts';

/** Rows of a matrix [outFeatures, inFeatures] that are stacked with others: its module's name, without `.weight`. */
export interface LoraPart {
  readonly module: string;
  readonly outFeatures: number;
  /** Default: all. */
  readonly rows?: Range | undefined;
}

/** What a matrix's input has: all of its features, and the range of them that a rank holds. */
export interface LoraInputs {
  readonly inFeatures: number;
  readonly columns?: Range | undefined;
}

/** Modules that an error names at most. */
const SHOWN = 4;

/** Open adapters of one model, and which of their matrices its layers have taken. */
export class LoraSet {
  readonly #loras: readonly LoraAdapter[];
  readonly #taken: Set<LoraModule>;
  /** The name in the model's checkpoint of a tensor that a layer asks for. */
  readonly #storedName: (name: string) => string;

  private constructor(loras: readonly LoraAdapter[], taken: Set<LoraModule>, storedName: (name: string) => string) {
    this.#loras = loras;
    this.#taken = taken;
    this.#storedName = storedName;
  }

  /** Opens adapters of a base model with this config.json, does `work` with them, and closes them. */
  static async with<T>(platform: Platform, sources: readonly LoraSource[], base: Json, work: (loras: LoraSet) => Promise<T>): Promise<T> {
    const loras: LoraAdapter[] = [];
    try {
      for (const source of sources) loras.push(await openLora(platform, source, base));
      return await work(new LoraSet(loras, new Set(), (name) => name));
    } finally {
      await Promise.all(loras.map((lora) => lora.close()));
    }
  }

  /** The same adapters for layers that know the checkpoint's tensors by other names. */
  under(storedName: (name: string) => string): LoraSet {
    return new LoraSet(this.#loras, this.#taken, (name) => this.#storedName(storedName(name)));
  }

  /** Columns of the scratch that products by these adapters need. */
  get columns(): number {
    return loraColumns(this.#modules.reduce((most, { rank }) => Math.max(most, rank), 0));
  }

  /** Device bytes of all matrices. */
  get bytes(): number {
    return this.#modules.reduce((sum, { rank, a, b }) => sum + loraBytes(rank, b.shape[0]!, a.shape[1]!), 0);
  }

  get #modules(): readonly LoraModule[] {
    return this.#loras.flatMap(({ modules }) => [...modules.values()]);
  }

  /** What the adapters add to a matrix that is stacked from parts with the same input; undefined where none of them changes it. */
  async load(device: Device, label: string, parts: readonly LoraPart[], inputs: LoraInputs): Promise<LoraWeight | undefined> {
    // Parts of one matrix that follow one another are one segment, because A is the same.
    const segments: { readonly module: string; readonly parts: LoraPart[] }[] = [];
    for (const part of parts) {
      const last = segments.at(-1);
      if (last?.module === part.module) last.parts.push(part);
      else segments.push({ module: part.module, parts: [part] });
    }
    if (!segments.some(({ module }) => this.#loras.some((lora) => this.#find(lora, module)))) return undefined;
    const loaded = [];
    for (const { module, parts: rows } of segments) {
      const outFeatures = rows.reduce((sum, part) => sum + sizeOf(rowsOf(part)), 0);
      const loras: (LoraMatrices | undefined)[] = [];
      for (const lora of this.#loras) loras.push(await this.#matrices(lora, module, rows, inputs));
      loaded.push({ outFeatures, loras });
    }
    return uploadLora(device, label, sizeOf(inputs.columns ?? { from: 0, to: inputs.inFeatures }), loaded);
  }

  /** Throws EngineError for matrices that no layer has taken. */
  expectTaken(architecture: string): void {
    for (const lora of this.#loras) {
      const left = [...lora.modules].filter(([, module]) => !this.#taken.has(module)).map(([name]) => name);
      if (left.length === 0) continue;
      const what = `of its ${lora.modules.size} modules ${left.length} cannot be served in a model of type ${architecture}: ${left.slice(0, SHOWN).join(', ')}`;
      throw loraError('unsupported', lora, `${what}; adapters go with the projections of attention and of MLPs without experts (docs/lora.md)`); // prettier-ignore
    }
  }

  /** An adapter's matrices for a module, under the name that the checkpoint has or the one that layers have. */
  #find({ modules }: LoraAdapter, module: string): LoraModule | undefined {
    return modules.get(this.#storedName(`${module}.weight`).replace(/\.weight$/, '')) ?? modules.get(module);
  }

  async #matrices(
    lora: LoraAdapter,
    module: string,
    parts: readonly LoraPart[],
    { inFeatures, columns }: LoraInputs,
  ): Promise<LoraMatrices | undefined> {
    const found = this.#find(lora, module);
    if (!found) return undefined;
    this.#taken.add(found);
    const { rank, scale, a, b } = found;
    expectShape(lora, a, [rank, inFeatures]);
    expectShape(lora, b, [parts[0]!.outFeatures, rank]);
    const all = await lora.read(b);
    const ranges = parts.map(rowsOf);
    const scaled = new Float32Array(ranges.reduce((sum, rows) => sum + sizeOf(rows) * rank, 0));
    let at = 0;
    for (const { from, to } of ranges) for (let i = from * rank; i < to * rank; i++) scaled[at++] = all[i]! * scale;
    return { rank, a: columnsOf(await lora.read(a), rank, columns), b: scaled };
  }
}

const rowsOf = ({ rows, outFeatures }: LoraPart): Range => rows ?? { from: 0, to: outFeatures };

function columnsOf(values: Float32Array, rows: number, columns: Range | undefined): Float32Array {
  if (!columns) return values;
  const [width, kept] = [values.length / rows, sizeOf(columns)];
  const out = new Float32Array(rows * kept);
  for (let row = 0; row < rows; row++) out.set(values.subarray(row * width + columns.from, row * width + columns.to), row * kept);
  return out;
}

function expectShape(lora: LoraAdapter, { name, shape }: LoraTensor, expected: readonly number[]): void {
  if (shape.every((size, i) => size === expected[i])) return;
  throw loraError('invalid_model', lora, `tensor ${name} has shape [${shape.join(', ')}], expected [${expected.join(', ')}]: it was made for another model`); // prettier-ignore
}
