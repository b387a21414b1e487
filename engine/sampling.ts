/**
 * The numbers that say how a token is chosen, each one row of one table. Derived from it: SamplingParams, the HTTP fields and their ranges, the defaults,
 * the words of the GPU's row (ops/sampling-row.ts), the cuts of a split vocabulary and the playground's sliders.
 */
import { EngineError } from './errors.ts';

/** A control of the playground; its range may be narrower than the field's. */
interface SamplingControl {
  readonly label: string;
  readonly max: number;
  readonly step: number;
  /** What the page starts with, where that is not the default. */
  readonly initial?: number;
}

/** One row of logits, as a cut sees it. */
export interface CutRow {
  /** The largest logit. */
  readonly top: number;
  /** 1 / temperature. */
  readonly inverseTemperature: number;
  /** The logits that no mask ruled out: all of them for cuts that are `wholeRow`, else the largest. */
  readonly logits: Float32Array;
}

interface SamplingField {
  /** Name in the HTTP API, in generation_config.json and in the WGSL struct. */
  readonly wire: string;
  readonly meaning: string;
  /** `draw`: how the draw is made; `cut`: which tokens it may give, a word of the GPU's row; `penalty`: what changes the logits before. */
  readonly stage: 'draw' | 'cut' | 'penalty';
  /** Type of a cut's word. */
  readonly type?: 'f32' | 'u32';
  /** Range in the HTTP API. */
  readonly min: number;
  readonly max?: number;
  /** `min` itself is refused. */
  readonly aboveMin?: true;
  readonly integer?: true;
  /** Absent = drawn at random. A cut or penalty with this value does nothing. */
  readonly default?: number;
  /** generation_config.json may give another default. */
  readonly configured?: true;
  /** The default where that file says nothing of how to sample: at 1, small models write gibberish. */
  readonly unsaid?: number;
  /** The smallest logit that a cut keeps, for cuts that are a distance from the largest; needs no order of the tokens. */
  readonly floor?: (value: number, row: CutRow) => number;
  /** `floor` needs the logits of the whole vocabulary: ranks that share one exchange such rows whole. */
  readonly wholeRow?: true;
  readonly control?: SamplingControl;
}

/** Logits at or below this are those of tokens that may not come: masked, or banned by a bias. */
const RULED_OUT = -1e29;

/** Standard deviation of the logits of tokens that may come. */
function deviation(logits: Float32Array): number {
  const possible = logits.filter((logit) => logit > RULED_OUT);
  const count = Math.max(1, possible.length);
  const mean = possible.reduce((sum, logit) => sum + logit, 0) / count;
  return Math.sqrt(possible.reduce((sum, logit) => sum + (logit - mean) ** 2, 0) / count);
}

/** The table. Cuts apply in the order of sample_threshold.wgsl: top-k, top-p, then those with a floor. */
export const SAMPLING = {
  /** >= 0; below 1e-6 means greedy. */
  temperature: {
    wire: 'temperature',
    meaning: 'Divides the logits; 0 is greedy.',
    stage: 'draw',
    min: 0,
    max: 2,
    default: 1,
    unsaid: 0.7,
    configured: true,
    control: { label: 'Temperature', max: 2, step: 0.05, initial: 0.7 },
  },
  /** 0..1; 0 keeps only the best token. */
  topP: {
    wire: 'top_p',
    meaning: 'Keeps the likeliest tokens that together have this probability.',
    stage: 'cut',
    type: 'f32',
    min: 0,
    max: 1,
    default: 1,
    unsaid: 0.95,
    configured: true,
    control: { label: 'Top-p', max: 1, step: 0.01 },
  },
  /** -1 or 0 = off. Default off. */
  topK: {
    wire: 'top_k',
    meaning: 'Keeps this many tokens; -1 and 0 are off.',
    stage: 'cut',
    type: 'u32',
    min: -1,
    integer: true,
    default: 0,
    configured: true,
    control: { label: 'Top-k, 0 = off', max: 200, step: 1 },
  },
  /** 0..1. Default 0. */
  minP: {
    wire: 'min_p',
    meaning: 'Keeps tokens at least this probable relative to the likeliest.',
    stage: 'cut',
    type: 'f32',
    min: 0,
    max: 1,
    default: 0,
    configured: true,
    floor: (value, { top, inverseTemperature }) => top + Math.log(value) / inverseTemperature,
    control: { label: 'Min-p', max: 1, step: 0.01 },
  },
  /** >= 0; 0 = off. Default 0. Tang et al. 2024, Top-nσ: what it keeps does not depend on the temperature. */
  topNSigma: {
    wire: 'top_n_sigma',
    meaning: 'Keeps tokens whose logit is within this many standard deviations (of all logits that may come) of the largest; 0 is off.',
    stage: 'cut',
    type: 'f32',
    min: 0,
    max: 100,
    default: 0,
    configured: true,
    floor: (value, { top, logits }) => top - value * deviation(logits),
    wholeRow: true,
    control: { label: 'Top-nσ, 0 = off', max: 5, step: 0.1 },
  },
  /**
   * Any integer of 64 bits; absent = random. Beyond 2^53 it is the nearest double, which is all that is left of a JSON number there. Keyed with (choice,
   * position), so independent of the batch.
   */
  seed: {
    wire: 'seed',
    meaning: 'The same seed gives the same answer; -1 or absent is random.',
    stage: 'draw',
    min: -(2 ** 63),
    max: 2 ** 63,
    integer: true,
  },
  /** > 0; 1 = off. Over prompt and answer. */
  repetitionPenalty: {
    wire: 'repetition_penalty',
    meaning: 'Makes tokens of prompt and answer less likely; 1 is off.',
    stage: 'penalty',
    min: 0,
    aboveMin: true,
    max: 2,
    default: 1,
    configured: true,
  },
  /** -2..2, over the answer. Default 0. */
  presencePenalty: {
    wire: 'presence_penalty',
    meaning: 'Subtracted from the logits of tokens that the answer has.',
    stage: 'penalty',
    min: -2,
    max: 2,
    default: 0,
  },
  /** -2..2, over the answer. Default 0. */
  frequencyPenalty: {
    wire: 'frequency_penalty',
    meaning: 'Subtracted from the logits of tokens once for each time the answer has them.',
    stage: 'penalty',
    min: -2,
    max: 2,
    default: 0,
  },
} as const satisfies Readonly<Record<string, SamplingField>>;

type Table = typeof SAMPLING;
export type SamplingName = keyof Table;
type Having<Property> = { [K in SamplingName]: Table[K] extends Property ? K : never }[SamplingName];
/** Names of the cuts, of the penalties and of what the playground has a control for. */
export type CutName = Having<{ readonly stage: 'cut' }>;
export type PenaltyName = Having<{ readonly stage: 'penalty' }>;
export type ControlName = Having<{ readonly control: SamplingControl }>;
/** The numbers by their names in the HTTP API. */
export type WireSampling = { readonly [K in SamplingName as Table[K]['wire']]?: number | undefined };

/** The most entries of a request's `logitBias` and of its `stopTokenIds`: steps have room for as many. */
export const MAX_BIASES = 1024;
export const MAX_STOP_TOKENS = 1024;

/** Sampling settings of one sequence. Absent fields take the model's defaults (samplingDefaults). */
export type SamplingParams = { readonly [K in SamplingName]?: number } & {
  /** Token id -> -100..100, added to the logit. */
  readonly logitBias?: Readonly<Record<string, number>>;
};

/** A row of the table, for code that goes over all of them. */
export const samplingField = (name: SamplingName): SamplingField => SAMPLING[name];

/** Every name, in the table's order. */
export const SAMPLING_NAMES = Object.keys(SAMPLING) as SamplingName[];
export const CUT_NAMES = SAMPLING_NAMES.filter((name): name is CutName => SAMPLING[name].stage === 'cut');
/** In the order of the words that penalize_logits.wgsl reads. */
export const PENALTY_NAMES = SAMPLING_NAMES.filter((name): name is PenaltyName => SAMPLING[name].stage === 'penalty');
export const CONTROL_NAMES = SAMPLING_NAMES.filter((name): name is ControlName => 'control' in SAMPLING[name]);

/** A number for each of these names. */
export function samplingNumbers<K extends SamplingName>(names: readonly K[], of: (name: K) => number): Record<K, number> {
  return Object.fromEntries(names.map((name) => [name, of(name)])) as Record<K, number>;
}

/** A number for every row that has one, used where a request says nothing. */
export type SamplingDefaults = Readonly<Record<Exclude<SamplingName, 'seed'>, number>>;

/**
 * What a model is sampled with: its generation_config.json's numbers; where that gives no temperature, the numbers `recommended` for it beside them (under
 * the same names); where neither does, ones at which a model stays sensible. `openai` ignores all of it, as OpenAI's API has fixed defaults.
 */
export function samplingDefaults(
  file: Readonly<Record<string, unknown>>,
  policy: 'model' | 'openai',
  recommended: Readonly<Record<string, number>> = {},
): SamplingDefaults {
  // A file's temperature was chosen together with what else stands there: nothing is mixed into it.
  const generation = typeof file['temperature'] === 'number' ? file : { ...recommended, ...numbersOf(file) };
  const isSaid = policy === 'openai' || typeof generation['temperature'] === 'number';
  const names = SAMPLING_NAMES.filter((name) => name !== 'seed');
  const numbers = samplingNumbers(names, (name) => {
    const { wire, configured, unsaid }: SamplingField = SAMPLING[name];
    const value = policy === 'model' && configured ? generation[wire] : undefined;
    return typeof value === 'number' ? value : ((isSaid ? undefined : unsaid) ?? SAMPLING[name].default);
  });
  const used = policy === 'model' && file['do_sample'] === false ? { ...numbers, temperature: 0 } : numbers;
  for (const name of names) expectAboveMin(name, used[name]);
  return used;
}

/** Throws for a number that means nothing, such as a penalty that divides by 0. Files may go beyond what requests may at most. */
function expectAboveMin(name: SamplingName, value: number): void {
  const { wire, min, aboveMin }: SamplingField = SAMPLING[name];
  if (aboveMin ? value > min : value >= min) return;
  throw new EngineError('invalid_model', `generation_config.json: ${wire} is ${value}, expected ${aboveMin ? `more than ${min}` : `at least ${min}`}`); // prettier-ignore
}

const numbersOf = (file: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(file).filter(([, value]) => typeof value === 'number'));

/** The defaults that change anything, under their HTTP names; of a greedy model that is the temperature alone. */
export function shownDefaults(defaults: SamplingDefaults): Readonly<Record<string, number>> {
  const isGreedy = defaults.temperature === 0;
  const names = SAMPLING_NAMES.filter((name) => name !== 'seed').filter(
    (name) => name === 'temperature' || (defaults[name] !== SAMPLING[name].default && !(isGreedy && SAMPLING[name].stage === 'cut')),
  );
  return Object.fromEntries(names.map((name) => [SAMPLING[name].wire, defaults[name]]));
}

/** Cuts that keep every token. */
export const NO_CUTS: Readonly<Record<CutName, number>> = samplingNumbers(CUT_NAMES, (name) => SAMPLING[name].default);

/** Settings of a greedy sequence, with every default filled in. */
export const GREEDY_SAMPLING = { ...NO_CUTS, temperature: 0, seed: 0 };

/** The numbers under their HTTP names; absent ones stay absent. */
export function samplingToWire(sampling: SamplingParams): WireSampling {
  const present = SAMPLING_NAMES.filter((name) => sampling[name] !== undefined);
  return Object.fromEntries(present.map((name) => [SAMPLING[name].wire, sampling[name]]));
}

/** The numbers of an HTTP body; -1 as a seed is random, as for other servers. */
export function samplingFromWire(wire: WireSampling): SamplingParams {
  const found = SAMPLING_NAMES.map((name) => [name, wire[SAMPLING[name].wire]] as const);
  return Object.fromEntries(found.filter(([name, value]) => value !== undefined && !(name === 'seed' && value === -1)));
}
