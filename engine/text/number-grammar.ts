/**
 * JSON numbers within bounds, as a grammar. What is left to say after each character of a number is a state of a finite automaton: how what
 * was written compares with each bound, and the remainder by the divisor. The automaton is minimised and written as right-linear EBNF rules.
 * Such numbers have no exponent.
 */
import { EngineError } from '../errors.ts';

/** Which numbers are meant; bounds as JSON Schema has them. */
export interface NumberRange {
  readonly integer: boolean;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
}

/** A number of at most this many states: every state is a rule to compile. */
const MAX_STATES = 500;
/** States before they are minimised. */
const MAX_RAW_STATES = 20_000;
const SYMBOLS = ['-', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'] as const;

/** A decimal number's magnitude by its digits: `whole` without leading zeros, `fraction` without trailing ones. */
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

/** What is known after some characters. */
interface State {
  readonly phase: 'start' | 'sign' | 'zero' | 'whole' | 'point' | 'fraction';
  readonly negative: boolean;
  /** Digits read of this phase, up to the number from which on they make no difference. */
  readonly digits: number;
  /** How the digits compare with those of the bounds: below 0, 0, above 0. */
  readonly low: number;
  readonly high: number;
  readonly remainder: number;
}

/** EBNF rules, the first of which is `name`; throws EngineError where no number or too many states remain. */
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

/** Steps through the characters of a number. */
class NumberAutomaton {
  readonly #integer: boolean;
  readonly #positive: Interval | undefined;
  readonly #negative: Interval | undefined;
  /** The divisor as an integer, at `#places` decimals. */
  readonly #divisor: number;
  readonly #places: number;
  readonly #wholeDigits: number;
  readonly #fractionDigits: number;

  constructor(range: NumberRange) {
    const low = tighter([bound(range.minimum, false), bound(range.exclusiveMinimum, true)], 1);
    const high = tighter([bound(range.maximum, false), bound(range.exclusiveMaximum, true)], -1);
    this.#integer = range.integer;
    // A bound of the other sign says nothing about this one's magnitude, or rules the sign out.
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
    // A bound that goes on with other digits than 0 (it has no trailing zeros) is above what has ended.
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

  /** More digits before the point are more, whatever they are. */
  #endWhole(state: State): State {
    const { low, high } = this.#interval(state)!;
    const order = (item: Bound | undefined, so: number): number => (item ? Math.sign(state.digits - item.whole.length) || so : 0);
    return { ...state, phase: 'point', digits: 0, low: order(low, state.low), high: order(high, state.high) };
  }

  #fraction(state: State, digit: number): State | undefined {
    // A multiple has no more decimals than its divisor; zeros without end help nobody.
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

/** A state by number: where each symbol leads, -1 = nowhere. */
interface Node {
  readonly accepts: boolean;
  readonly next: readonly number[];
}

/** All states that can be reached and can still end; throws where the start is none of them. */
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

/** Moore's algorithm; the start is state 0, and unreachable states are gone. */
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

/** The digits of a number as JSON and JavaScript write it, its exponent spelled out. */
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

/** Of two bounds the one that allows less: the greater for `direction` 1, the smaller for -1. */
function tighter(bounds: readonly ReturnType<typeof bound>[], direction: 1 | -1): Bound | undefined {
  const [first, second] = bounds.filter((item) => item !== undefined);
  if (!first || !second) return first;
  const order = (second.value - first.value) * direction;
  return order > 0 || (order === 0 && second.exclusive) ? second : first;
}

function tooComplex(range: NumberRange, limit: number): EngineError {
  return new EngineError('invalid_json_schema', `the numbers of ${JSON.stringify(range)} need more than ${limit} states to be enforced`);
}
