/**
 * Grammars of JSON numbers within bounds. A finite automaton reads a number by its characters. Its state is how the digits so far compare with each bound, and
 * their remainder by the divisor. The automaton is minimised and written as right-linear EBNF rules. Such numbers have no exponent.
 */
import { EngineError } from '../errors.ts';

/** A set of numbers, by the keywords of JSON Schema. */
export interface NumberRange {
  readonly integer: boolean;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
}

/** Most states of a minimised automaton: every state is a rule to compile. */
const MAX_STATES = 500;
/** Most states before minimisation. */
const MAX_RAW_STATES = 20_000;
const SYMBOLS = ['-', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'] as const;

/** Decimal digits of a number's magnitude: `whole` without leading zeros, `fraction` without trailing ones. */
interface Digits {
  readonly negative: boolean;
  readonly whole: string;
  readonly fraction: string;
}

interface Bound extends Digits {
  readonly exclusive: boolean;
}

/** The bounds of a number's magnitude, given its sign. */
interface Interval {
  readonly low: Bound | undefined;
  readonly high: Bound | undefined;
}

/** State of the automaton after some characters. */
interface State {
  readonly phase: 'start' | 'sign' | 'zero' | 'whole' | 'point' | 'fraction';
  readonly negative: boolean;
  /** Number of digits read in this phase, up to the number beyond which it makes no difference. */
  readonly digits: number;
  /** Order of the digits so far and those of each bound: below (-1), equal (0) or above (1). */
  readonly low: number;
  readonly high: number;
  readonly remainder: number;
}

/**
 * Returns EBNF rules for a set of numbers, the first of which is `name`. Throws EngineError('invalid_json_schema') if the set is empty or the automaton has too
 * many states.
 */
export function numberRules(name: string, range: NumberRange): string {
  const automaton = minimize(explore(new NumberAutomaton(range), range));
  if (automaton.length > MAX_STATES) throw tooComplex(range, MAX_STATES);
  const rule = (state: number): string => (state === 0 ? name : `${name}_${state}`);
  const lines = automaton.map(({ accepts, next }, state) => {
    const targets = [...new Set(next.filter((target) => target >= 0))];
    const choices = targets.map((target) => {
      const symbols = SYMBOLS.filter((_, i) => next[i] === target);
      const digits = symbols.filter((symbol) => /\d/.test(symbol)).join('');
      const parts = [...symbols.filter((symbol) => !/\d/.test(symbol)).map((symbol) => `"${symbol}"`), ...(digits ? [`[${digits}]`] : [])];
      const last = automaton[target]!.accepts && automaton[target]!.next.every((after) => after < 0);
      return parts.map((part) => (last ? part : `${part} ${rule(target)}`)).join(' | ');
    });
    return `${rule(state)} ::= ${[...choices, ...(accepts ? ['""'] : [])].join(' | ')}`;
  });
  return `${lines.join('\n')}\n`;
}

/** Transitions of the automaton, and which states accept. */
class NumberAutomaton {
  readonly #integer: boolean;
  readonly #positive: Interval | undefined;
  readonly #negative: Interval | undefined;
  /** The divisor times 10^`#places`, an integer; 0 = none. */
  readonly #divisor: number;
  readonly #places: number;
  readonly #wholeDigits: number;
  readonly #fractionDigits: number;

  constructor(range: NumberRange) {
    const low = tighter([bound(range.minimum, false), bound(range.exclusiveMinimum, true)], 1);
    const high = tighter([bound(range.maximum, false), bound(range.exclusiveMaximum, true)], -1);
    this.#integer = range.integer;
    // A bound of the other sign either does not limit this sign's magnitude or excludes the sign.
    this.#positive = high?.negative ? undefined : { low: low?.negative ? undefined : low, high };
    this.#negative = low && !low.negative ? undefined : { low: high?.negative ? high : undefined, high: low };
    const { whole, fraction } = digitsOf(range.multipleOf ?? 0);
    this.#divisor = Number(whole + fraction);
    this.#places = fraction.length;
    const bounds = [low, high].filter((item) => item !== undefined);
    this.#wholeDigits = Math.max(0, ...bounds.map((item) => item.whole.length)) + 1;
    this.#fractionDigits = Math.max(this.#places, ...bounds.map((item) => item.fraction.length)) + 1;
    if (this.#divisor * 10 > Number.MAX_SAFE_INTEGER) throw tooComplex(range, MAX_STATES);
  }

  readonly start: State = { phase: 'start', negative: false, digits: 0, low: 0, high: 0, remainder: 0 };

  step(state: State, symbol: string): State | undefined {
    const { phase } = state;
    if (symbol === '-') return phase === 'start' && this.#negative ? { ...state, phase: 'sign', negative: true } : undefined;
    if (symbol === '.') return !this.#integer && (phase === 'zero' || phase === 'whole') ? this.#endWhole(state) : undefined;
    if (!this.#interval(state) || phase === 'zero') return undefined;
    return phase === 'point' || phase === 'fraction' ? this.#fraction(state, Number(symbol)) : this.#whole(state, Number(symbol));
  }

  accepts(state: State): boolean {
    const { phase } = state;
    if (phase === 'start' || phase === 'sign' || phase === 'point') return false;
    const ended = phase === 'fraction' ? state : this.#endWhole(state);
    const { low, high } = this.#interval(state)!;
    // A number whose digits end before those of an otherwise equal bound is below it: a bound has no trailing zeros.
    const compare = (item: Bound, order: number): number => (order === 0 && item.fraction.length > ended.digits ? -1 : order);
    if (low && !(compare(low, ended.low) > (low.exclusive ? 0 : -1))) return false;
    if (high && !(compare(high, ended.high) < (high.exclusive ? 0 : 1))) return false;
    if (this.#divisor === 0) return true;
    const missing = 10 ** Math.max(0, this.#places - ended.digits);
    return Number((BigInt(ended.remainder) * BigInt(missing)) % BigInt(this.#divisor)) === 0;
  }

  #interval({ negative }: State): Interval | undefined {
    return negative ? this.#negative : this.#positive;
  }

  #whole(state: State, digit: number): State {
    const { low, high } = this.#interval(state)!;
    const order = (item: Bound | undefined, so: number): number => so || (item ? digit - Number(item.whole[state.digits] ?? 0) : 0);
    return {
      ...state,
      phase: state.digits === 0 && digit === 0 ? 'zero' : 'whole',
      digits: Math.min(state.digits + 1, this.#wholeDigits),
      low: Math.sign(order(low, state.low)),
      high: Math.sign(order(high, state.high)),
      remainder: this.#divide(state.remainder * 10 + digit),
    };
  }

  /** Ends the digits before the point: with more of them than a bound the number is above it, whatever they are. */
  #endWhole(state: State): State {
    const { low, high } = this.#interval(state)!;
    const order = (item: Bound | undefined, so: number): number => (item ? Math.sign(state.digits - item.whole.length) || so : 0);
    return { ...state, phase: 'point', digits: 0, low: order(low, state.low), high: order(high, state.high) };
  }

  #fraction(state: State, digit: number): State | undefined {
    // A multiple needs no more decimals than its divisor, and endless zeros would help nobody.
    if (this.#divisor > 0 && state.digits >= this.#places) return undefined;
    const { low, high } = this.#interval(state)!;
    const order = (item: Bound | undefined, so: number): number => so || (item ? digit - Number(item.fraction[state.digits] ?? 0) : 0);
    return {
      ...state,
      phase: 'fraction',
      digits: Math.min(state.digits + 1, this.#fractionDigits),
      low: Math.sign(order(low, state.low)),
      high: Math.sign(order(high, state.high)),
      remainder: state.digits < this.#places ? this.#divide(state.remainder * 10 + digit) : state.remainder,
    };
  }

  #divide(value: number): number {
    return this.#divisor === 0 ? 0 : value % this.#divisor;
  }
}

/** A numbered state; `next` is the state that each of SYMBOLS leads to, -1 = none. */
interface Node {
  readonly accepts: boolean;
  readonly next: readonly number[];
}

/**
 * Explores the reachable states, and drops transitions to those that no number can be completed from. Throws EngineError if the start is one of them, or if there
 * are too many states.
 */
function explore(automaton: NumberAutomaton, range: NumberRange): Node[] {
  const states = [automaton.start];
  const known = new Map([[JSON.stringify(automaton.start), 0]]);
  const next: number[][] = [];
  for (let at = 0; at < states.length; at++) {
    next.push(
      SYMBOLS.map((symbol) => {
        const state = automaton.step(states[at]!, symbol);
        if (!state) return -1;
        const key = JSON.stringify(state);
        const number = known.get(key) ?? states.push(state) - 1;
        known.set(key, number);
        return number;
      }),
    );
    if (states.length > MAX_RAW_STATES) throw tooComplex(range, MAX_RAW_STATES);
  }
  const accepts = states.map((state) => automaton.accepts(state));
  const alive = [...accepts];
  const before = next.map((): number[] => []);
  next.forEach((targets, from) => targets.forEach((target) => target >= 0 && before[target]!.push(from)));
  const queue = alive.flatMap((ends, state) => (ends ? [state] : []));
  for (const state of queue) {
    for (const from of before[state]!) {
      if (alive[from]) continue;
      alive[from] = true;
      queue.push(from);
    }
  }
  if (!alive[0]) throw new EngineError('invalid_json_schema', `no number satisfies ${JSON.stringify(range)}`);
  return next.map((targets, state) => ({ accepts: accepts[state]!, next: targets.map((target) => (alive[target] ? target : -1)) }));
}

/** Minimises an automaton by Moore's algorithm. The start stays state 0, and unreachable states are dropped. */
function minimize(nodes: readonly Node[]): Node[] {
  let classes = nodes.map(({ accepts }): number => (accepts ? 1 : 0));
  for (let count = 0; ;) {
    const numbers = new Map<string, number>();
    classes = nodes.map(({ next }, i) => {
      const key = `${classes[i]}:${next.map((target) => (target < 0 ? -1 : classes[target])).join()}`;
      const number = numbers.get(key) ?? numbers.size;
      numbers.set(key, number);
      return number;
    });
    if (numbers.size === count) break;
    count = numbers.size;
  }
  const order = new Map([[classes[0]!, 0]]);
  const minimal: Node[] = [];
  const representatives = [0];
  for (let at = 0; at < representatives.length; at++) {
    const { accepts, next } = nodes[representatives[at]!]!;
    const targets = next.map((target) => {
      if (target < 0) return -1;
      const known = order.get(classes[target]!);
      if (known !== undefined) return known;
      order.set(classes[target]!, representatives.length);
      return representatives.push(target) - 1;
    });
    minimal.push({ accepts, next: targets });
  }
  return minimal;
}

/** Decimal digits of a finite number, its exponent written out. */
function digitsOf(value: number): Digits {
  const [, sign, whole = '', fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value))!;
  const shift = Number(exponent);
  const digits = '0'.repeat(Math.max(0, -shift)) + whole + fraction + '0'.repeat(Math.max(0, shift - fraction.length));
  const point = whole.length + Math.max(0, -shift) + shift;
  return {
    negative: sign === '-',
    whole: digits.slice(0, point).replace(/^0+(?=\d)/, ''),
    fraction: digits.slice(point).replace(/0+$/, ''),
  };
}

function bound(value: number | undefined, exclusive: boolean): (Bound & { readonly value: number }) | undefined {
  return value === undefined ? undefined : { ...digitsOf(value), exclusive, value };
}

/** The stricter of two bounds: the greater for `direction` 1 (lower bounds), the smaller for -1. */
function tighter(bounds: readonly ReturnType<typeof bound>[], direction: 1 | -1): Bound | undefined {
  const [first, second] = bounds.filter((item) => item !== undefined);
  if (!first || !second) return first;
  const order = (second.value - first.value) * direction;
  return order > 0 || (order === 0 && second.exclusive) ? second : first;
}

function tooComplex(range: NumberRange, limit: number): EngineError {
  return new EngineError('invalid_json_schema', `the numbers of ${JSON.stringify(range)} need more than ${limit} states to be enforced`);
}
