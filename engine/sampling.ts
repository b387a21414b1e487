/**
 * The sampling parameters, one row each. Derived from the table: SamplingParams, the HTTP fields and their ranges, the defaults, the words of the GPU's row
 * (ops/sampling-row.ts), the thresholds of a split vocabulary and the playground's sliders.
 */
import { EngineError } from './errors.ts';

/** A slider of the playground; its range may be narrower than the parameter's. */
interface SamplingControl {
  readonly label: string;
  readonly max: number;
  readonly step: number;
  /** Initial value, if it is not the default. */
  readonly initial?: number;
}

/** A row of logits, from which a cut computes its threshold. */
export interface CutRow {
  /** The largest logit. */
  readonly top: number;
  /** 1 / temperature. */
  readonly inverseTemperature: number;
  /** The logits of tokens that no mask excludes: all of them if the cut is `wholeRow`, else the largest ones. */
  readonly logits: Float32Array;
}

interface SamplingField {
  /** Name in the HTTP API, in generation_config.json and in the WGSL struct. */
  readonly wire: string;
  readonly meaning: string;
  /** `penalty` changes the logits; `cut` then restricts the candidates, and is a word of the GPU's row; `draw` decides how one of them is drawn. */
  readonly stage: 'draw' | 'cut' | 'penalty';
  /** Type of a cut's word. */
  readonly type?: 'f32' | 'u32';
  /** Range in the HTTP API. */
  readonly min: number;
  readonly max?: number;
  /** `min` itself is refused. */
  readonly aboveMin?: true;
  readonly integer?: true;
  /** Default; absent = drawn at random. A cut or penalty with this value has no effect. */
  readonly default?: number;
  /** Whether generation_config.json may give another default. */
  readonly configured?: true;
  /** Default if that file says nothing about sampling: at temperature 1 small models write gibberish. */
  readonly unsaid?: number;
  /** For cuts that keep a distance from the largest logit: the smallest logit that is kept. They need no sorting. */
  readonly floor?: (value: number, row: CutRow) => number;
  /** Whether `floor` needs the logits of the whole vocabulary, which ranks with a slice each must then exchange. */
  readonly wholeRow?: true;
  readonly control?: SamplingControl;
}

/** Logits at or below this belong to excluded tokens: masked, or banned by a bias. */
const RULED_OUT = -1e29;

/** Standard deviation of the logits of tokens that are not excluded. */
function deviation(logits: Float32Array): number {
  const possible = logits.filter((logit) => logit > RULED_OUT);
  const count = Math.max(1, possible.length);
  const mean = possible.reduce((sum, logit) => sum + logit, 0) / count;
  return Math.sqrt(possible.reduce((sum, logit) => sum + (logit - mean) ** 2, 0) / count);
}

/** The table of sampling parameters. Cuts apply in the order of sample_threshold.wgsl: top-k, top-p, then those with a floor. */
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
  /** >= 0; 0 = off. Default 0. Tang et al. 2024, Top-nσ: the tokens that it keeps do not depend on the temperature. */
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
   * Any 64-bit integer; absent = random. Beyond 2^53 it is the nearest double, as every JSON number is. Random numbers are keyed by (seed, choice, position), so a
   * draw does not depend on the batch.
   */
  seed: {
    wire: 'seed',
    meaning: 'The same seed gives the same answer; -1 or absent is random.',
    stage: 'draw',
    min: -(2 ** 63),
    max: 2 ** 63,
    integer: true,
  },
  /** > 0; 1 = off. Counts tokens of the prompt and the answer. */
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
  /** -2..2. Default 0. Counts tokens of the answer only. */
  presencePenalty: {
    wire: 'presence_penalty',
    meaning: 'Subtracted from the logits of tokens that the answer has.',
    stage: 'penalty',
    min: -2,
    max: 2,
    default: 0,
  },
  /** -2..2. Default 0. Counts tokens of the answer only. */
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
/** Names of the cuts, of the penalties, and of the parameters with a slider in the playground. */
export type CutName = Having<{ readonly stage: 'cut' }>;
export type PenaltyName = Having<{ readonly stage: 'penalty' }>;
export type ControlName = Having<{ readonly control: SamplingControl }>;
/** Sampling parameters by their names in the HTTP API. */
export type WireSampling = { readonly [K in SamplingName as Table[K]['wire']]?: number | undefined };

/** Most entries of a request's `logitBias` and `stopTokenIds`; the buffers of a step have room for as many. */
export const MAX_BIASES = 1024;
export const MAX_STOP_TOKENS = 1024;

/** Sampling parameters of one sequence. Absent ones take the model's defaults (samplingDefaults). */
export type SamplingParams = { readonly [K in SamplingName]?: number } & {
  /** Token id -> -100..100, added to the logit. */
  readonly logitBias?: Readonly<Record<string, number>>;
};

/** A row of the table, for code that loops over all rows. */
export const samplingField = (name: SamplingName): SamplingField => SAMPLING[name];

/** All names, in the order of the table. */
export const SAMPLING_NAMES = Object.keys(SAMPLING) as SamplingName[];
export const CUT_NAMES = SAMPLING_NAMES.filter((name): name is CutName => SAMPLING[name].stage === 'cut');
/** Names of the penalties, in the order of the words that penalize_logits.wgsl reads. */
export const PENALTY_NAMES = SAMPLING_NAMES.filter((name): name is PenaltyName => SAMPLING[name].stage === 'penalty');
export const CONTROL_NAMES = SAMPLING_NAMES.filter((name): name is ControlName => 'control' in SAMPLING[name]);

/** Makes a record with a number for each of the names. */
export function samplingNumbers<K extends SamplingName>(names: readonly K[], of: (name: K) => number): Record<K, number> {
  return Object.fromEntries(names.map((name) => [name, of(name)])) as Record<K, number>;
}

/** The value of each parameter (but the seed) for requests that do not give one. */
export type SamplingDefaults = Readonly<Record<Exclude<SamplingName, 'seed'>, number>>;

/**
 * The default sampling parameters of a model: those of its generation_config.json (`file`); if that gives no temperature, with the `recommended` ones (by the same
 * names) beside them; if neither gives one, values at which small models stay sensible. `openai` ignores both, since OpenAI's API has fixed defaults. Throws
 * EngineError('invalid_model') for a value that is out of range.
 */
export function samplingDefaults(
  file: Readonly<Record<string, unknown>>,
  policy: 'model' | 'openai',
  recommended: Readonly<Record<string, number>> = {},
): SamplingDefaults {
  // A file's temperature was chosen together with its other parameters, so no recommended ones are mixed in.
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

/** Throws for a value below the minimum, such as a penalty of 0, which would divide by it. Files may exceed the maximum of requests. */
function expectAboveMin(name: SamplingName, value: number): void {
  const { wire, min, aboveMin }: SamplingField = SAMPLING[name];
  if (aboveMin ? value > min : value >= min) return;
  throw new EngineError('invalid_model', `generation_config.json: ${wire} is ${value}, expected ${aboveMin ? `more than ${min}` : `at least ${min}`}`); // prettier-ignore
}

const numbersOf = (file: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(file).filter(([, value]) => typeof value === 'number'));

/** The defaults that have an effect, by their HTTP names; for a greedy model cuts have none. */
export function shownDefaults(defaults: SamplingDefaults): Readonly<Record<string, number>> {
  const isGreedy = defaults.temperature === 0;
  const names = SAMPLING_NAMES.filter((name) => name !== 'seed').filter(
    (name) => name === 'temperature' || (defaults[name] !== SAMPLING[name].default && !(isGreedy && SAMPLING[name].stage === 'cut')),
  );
  return Object.fromEntries(names.map((name) => [SAMPLING[name].wire, defaults[name]]));
}

/** Values of the cuts that keep every token. */
export const NO_CUTS: Readonly<Record<CutName, number>> = samplingNumbers(CUT_NAMES, (name) => SAMPLING[name].default);

/** Parameters of a greedy sequence, with all defaults filled in. */
export const GREEDY_SAMPLING = { ...NO_CUTS, temperature: 0, seed: 0 };

/** Sampling parameters by their HTTP names; absent ones stay absent. */
export function samplingToWire(sampling: SamplingParams): WireSampling {
  const present = SAMPLING_NAMES.filter((name) => sampling[name] !== undefined);
  return Object.fromEntries(present.map((name) => [SAMPLING[name].wire, sampling[name]]));
}

/** Sampling parameters of an HTTP body; a seed of -1 is random, as in other servers. */
export function samplingFromWire(wire: WireSampling): SamplingParams {
  const found = SAMPLING_NAMES.map((name) => [name, wire[SAMPLING[name].wire]] as const);
  return Object.fromEntries(found.filter(([name, value]) => value !== undefined && !(name === 'seed' && value === -1)));
}
