/**
 * Renders Jinja templates within a budget. Rendering runs on the thread that serves every request, so neither a template nor a request's content may block it for
 * long.
 */
import { Environment, Interpreter, Template } from '@huggingface/jinja';
import { pythonText } from './python-text.ts';

type Node = Parameters<Interpreter['evaluate']>[0];
type Value = ReturnType<Interpreter['evaluate']>;

/**
 * Most steps of one rendering, a step being one evaluated node: 0.1 to 0.6 s of one core, depending on the nodes. A message costs 30 to 150 steps in the published
 * templates, so this is enough for thousands of them.
 */
const RENDER_STEPS = 1_000_000;

/**
 * Further costs: a step for this many characters read or written, a step for this many list elements, and this many steps for an iteration of a loop or a value of
 * the input.
 */
const CHARACTERS = 128;
const ELEMENTS = 16;
const ROUND = 8;

/** Thrown when a rendering exceeds its budget. */
export class BudgetError extends Error {
  constructor(steps: number) {
    super(`it takes more than ${steps} steps`);
  }
}

/** Most characters of a template; real ones have a few kilobytes, and a few dozen blanks at the beginning of a line. */
const MAX_TEMPLATE = 2 ** 20;
/** Most white space in a row. From every position in a run the library searches to its end for a statement: an hour for a megabyte of blanks. */
const MAX_RUN = 512;

/** Throws an Error if the parser would take too long. */
function checkSource(source: string): void {
  if (source.length > MAX_TEMPLATE) throw new Error(`it has ${source.length} characters; at most ${MAX_TEMPLATE} are read`);
  for (const [run] of source.matchAll(/\s+/g))
    if (run.length > MAX_RUN) throw new Error(`it has ${run.length} characters of white space in a row; at most ${MAX_RUN} are read`);
}

/** A parsed template whose rendering is bounded. */
export class BoundedTemplate {
  readonly #template: Template;
  readonly #printed: ReadonlySet<Node>;
  readonly #steps: number;

  /** Throws the parser's errors, and an Error for a source that it would take too long for. */
  constructor(source: string, steps = RENDER_STEPS) {
    checkSource(source);
    // As Jinja does with files from Windows.
    this.#template = new Template(source.replace(/\r\n?/g, '\n'));
    this.#printed = printedNodes(this.#template.parsed);
    this.#steps = steps;
  }

  /** Renders the template. Throws BudgetError, or the error that the template raises. */
  render(variables: Readonly<Record<string, unknown>>): string {
    const budget = new Budget(this.#steps);
    budget.spendOnInput(variables);
    const environment = new Environment();
    for (const [name, value] of Object.entries({ ...globals(budget), ...variables })) environment.set(name, value);
    // The value of a whole template is a string.
    return new BoundedInterpreter(environment, budget, this.#printed).run(this.#template.parsed).value as string;
  }
}

class Budget {
  readonly #steps: number;
  #left: number;

  constructor(steps: number) {
    this.#steps = steps;
    this.#left = steps;
  }

  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new BudgetError(this.#steps);
  }

  /** Charges for the input: each of its values becomes an object of the interpreter. */
  spendOnInput(value: unknown): void {
    this.spend(ROUND);
    if (typeof value !== 'object' || value === null) return;
    for (const part of Object.values(value)) this.spendOnInput(part);
  }

  /** Charges for handling a value, by its size. */
  spendOn({ type, value }: Value, perElement = 1 / ELEMENTS): void {
    if (type === 'StringValue') this.spend((value as string).length / CHARACTERS);
    else if (type === 'ArrayValue' || type === 'TupleValue') this.spend((value as readonly unknown[]).length * perElement);
    else if (type === 'ObjectValue') this.spend((value as ReadonlyMap<string, unknown>).size * perElement);
  }

  /** Charges for converting a whole value to text: nested lists that each contain the next one twice are few objects, but exponentially long text. */
  spendOnText(value: Value): void {
    const inside = innerValues(value);
    while (inside.length > 0) {
      const one = inside.pop()!;
      this.spend(1);
      if (one.type === 'StringValue') this.spendOn(one);
      // One by one, since a list may have more elements than a call can have arguments.
      for (const part of innerValues(one)) inside.push(part);
    }
  }
}

/** The values directly within a list or an object. */
function innerValues({ type, value }: Value): Value[] {
  if (type === 'ArrayValue' || type === 'TupleValue') return [...(value as readonly Value[])];
  return type === 'ObjectValue' || type === 'NamespaceValue' ? [...(value as ReadonlyMap<string, Value>).values()] : [];
}

const STRFTIME = new Template('{{ strftime_now(format) }}');

/** Global variables and functions of templates. The library sets them up only for its own interpreter, and its `range` makes any number of objects. */
function globals(budget: Budget): Readonly<Record<string, unknown>> {
  const range = (first: number, end?: number, step = 1): number[] => {
    const [from, to] = end === undefined ? [0, first] : [first, end];
    const count = Math.max(0, Math.ceil((to - from) / step));
    if (step === 0) throw new Error('range() step must not be zero');
    budget.spend(count * ROUND);
    return Array.from({ length: count }, (_, i) => from + i * step);
  };
  const raise = (message: string): never => {
    throw new Error(message);
  };
  const strftime = (format: string): string => STRFTIME.render({ format });
  return {
    true: true, True: true, false: false, False: false, none: null, None: null,
    range: withoutLists(range), raise_exception: withoutLists(raise), strftime_now: withoutLists(strftime),
  }; // prettier-ignore
}

/** Refuses lists and objects as arguments: the library would copy them or convert them to text, however large they are. */
function withoutLists<Given extends readonly unknown[], Made>(work: (...given: Given) => Made): (...given: Given) => Made {
  return (...given) => {
    if (given.some((value) => typeof value === 'object' && value !== null)) throw new Error('a list or an object stands where a text or a number is expected'); // prettier-ignore
    return work(...given);
  };
}

/** Nodes that make no new value. */
const FREE: ReadonlySet<string | undefined> = new Set([
  'Identifier',
  'MemberExpression',
  'IntegerLiteral',
  'FloatLiteral',
  'StringLiteral',
]);
/** Filters that first convert a value to a string, as Python does. */
const TEXT_FILTERS: ReadonlySet<unknown> = new Set(['upper', 'lower', 'title', 'capitalize', 'trim']);
/** Filters that convert their whole operand to text, or may apply others that do. */
const SPELLING_FILTERS: ReadonlySet<unknown> = new Set([...TEXT_FILTERS, 'string', 'tojson', 'join', 'map']);
/** Operators that convert the operand beside a string to text. */
const SPELLING_OPERATORS: ReadonlySet<unknown> = new Set(['+', '~']);
/** Methods of objects. A call means the method even if the object has a key of that name, such as a tool's parameter `items`. */
const METHODS: ReadonlySet<unknown> = new Set(['get', 'items', 'keys', 'values']);
/** Methods that strip white space, or the given characters, from the beginning of a string, its end or both. */
const STRIPS: ReadonlyMap<unknown, readonly [start: boolean, end: boolean]> = new Map([['lstrip', [true, false]], ['rstrip', [false, true]], ['strip', [true, true]]]); // prettier-ignore
/** Filters that do not read their whole operand. */
const CHEAP_FILTERS: ReadonlySet<unknown> = new Set(['length', 'first', 'last', 'list', 'safe']);

/** Statements: nodes of a block that print no value of their own. */
const STATEMENTS: ReadonlySet<string | undefined> = new Set(['Program', 'If', 'For', 'Set', 'Macro', 'CallStatement', 'FilterStatement', 'Break', 'Continue', 'Comment']); // prettier-ignore

/** Finds the expressions whose values a template prints: `{{ x }}`, at any depth. */
function printedNodes(template: Node): ReadonlySet<Node> {
  const printed = new Set<Node>();
  const walk = (node: Node): void => {
    for (const name of ['body', 'alternate', 'defaultBlock']) {
      const block: unknown = part(node, name);
      if (!Array.isArray(block)) continue;
      for (const one of block as readonly Node[]) {
        if (STATEMENTS.has(one?.type)) walk(one);
        else printed.add(one);
      }
    }
  };
  walk(template);
  return printed;
}

class BoundedInterpreter extends Interpreter {
  readonly #budget: Budget;
  /** Expressions that are printed. The library prints null as nothing, Python as `None`. */
  readonly #printed: ReadonlySet<Node>;
  /** Nodes whose value is walked by the node around them, and the cost per element. */
  readonly #walked = new Map<Node, number>();
  /** Nodes whose values a loop iterates over. */
  readonly #looped = new Set<Node>();
  /** Nodes whose values are converted to text. */
  readonly #spelled = new Set<Node>();
  /** Nodes whose value is called. */
  readonly #called = new Set<Node>();
  /** Objects whose keys are integers, which the library has as texts. */
  readonly #numbered = new WeakSet<Value>();
  /** Values of the nodes that stand for an evaluated one (see #standIn). */
  readonly #known = new WeakMap<object, Value>();

  constructor(environment: Environment, budget: Budget, printed: ReadonlySet<Node>) {
    super(environment);
    this.#budget = budget;
    this.#printed = printed;
  }

  override evaluate(node: Node, environment: Environment): Value {
    const known = node && this.#known.get(node);
    if (known) return known;
    this.#budget.spend(1);
    this.#note(node);
    const value = this.#asPython(node, environment) ?? super.evaluate(node, environment);
    const perElement = this.#walked.get(node);
    if (perElement !== undefined || !FREE.has(node?.type) || isSlice(node)) this.#budget.spendOn(value, perElement);
    if (this.#spelled.has(node) || this.#printed.has(node)) this.#budget.spendOnText(value);
    return value.type === 'NullValue' && this.#printed.has(node) ? this.#literal('None', environment) : value;
  }

  /** Evaluates a node as Python's Jinja does, for which templates are written, if the library would give another value or an error; undefined for other nodes. */
  #asPython(node: Node, environment: Environment): Value | undefined {
    if (this.#looped.has(node))
      return this.#elements(this.#valueAsPython(node, environment) ?? super.evaluate(node, environment), environment);
    return this.#valueAsPython(node, environment);
  }

  #valueAsPython(node: Node, environment: Environment): Value | undefined {
    if (node?.type === 'FilterExpression') return this.#filtered(node, environment);
    if (node?.type === 'MemberExpression' && !isSlice(node)) return this.#member(node, environment);
    if (node?.type === 'CallExpression') return this.#stripped(node, environment);
    if (node?.type === 'ObjectLiteral') return this.#withIntegers(node, environment);
    if (node?.type !== 'BinaryExpression' || valueOf(part(node, 'operator')) !== '~') return undefined;
    const texts = ['left', 'right'].map((side) => pythonText(this.evaluate(part(node, side), environment)));
    return this.#literal(texts.join(''), environment);
  }

  #filtered(node: Node, environment: Environment): Value | undefined {
    const name = valueOf(part(node, 'filter'));
    const isText = name === 'string' || TEXT_FILTERS.has(name);
    if (!isText && name !== 'items' && name !== 'length' && name !== 'dictsort') return undefined;
    const value = this.evaluate(part(node, 'operand'), environment);
    if (name === 'dictsort' && this.#numbered.has(value)) return this.#sorted(value, environment);
    if (name === 'string') return this.#literal(pythonText(value), environment);
    // An undefined value has no items.
    const empty = (): Value => super.evaluate({ type: 'ObjectLiteral', value: new Map() } as unknown as Node, environment);
    const text = (): Value => this.#literal(pythonText(value), environment);
    const operand = isText ? text() : value.type === 'UndefinedValue' ? empty() : value;
    return super.evaluate(withParts(node, { operand: this.#standIn(operand) }), environment);
  }

  #member(node: Node, environment: Environment): Value | undefined {
    const property = part(node, 'property');
    const isComputed = (node as unknown as { readonly computed?: unknown }).computed === true;
    const isMethod = !isComputed && this.#called.has(node) && METHODS.has(valueOf(property));
    if (!isMethod && (!isComputed || property?.type === 'StringLiteral')) return undefined;
    const object = this.evaluate(part(node, 'object'), environment);
    const given = withParts(node, { object: this.#standIn(object) });
    if (object.type !== 'ObjectValue') return super.evaluate(given, environment);
    if (isMethod) return object.builtins.get(valueOf(property) as string);
    const key = this.evaluate(property, environment);
    const isNumber = key.type === 'IntegerValue' && this.#numbered.has(object);
    // Other objects have no other keys than strings.
    if (key.type !== 'StringValue' && !isNumber) return environment.lookupVariable('');
    return super.evaluate(withParts(given, { property: this.#standIn(isNumber ? this.#literal(pythonText(key), environment) : key) }), environment); // prettier-ignore
  }

  /** An object written with integers as keys, as Seed-OSS's template has one; undefined for others. */
  #withIntegers(node: Node, environment: Environment): Value | undefined {
    const entries = [...(node as unknown as { readonly value: ReadonlyMap<Node, Node> }).value];
    if (entries.length === 0 || entries.some(([key]) => key?.type !== 'IntegerLiteral')) return undefined;
    const texts = new Map(entries.map(([key, value]) => [{ type: 'StringLiteral', value: String(valueOf(key)) }, value]));
    const object = super.evaluate({ type: 'ObjectLiteral', value: texts } as unknown as Node, environment);
    this.#numbered.add(object);
    return object;
  }

  /** The pairs of an object with integer keys, in their order. */
  #sorted(object: Value, environment: Environment): Value {
    const pairs = [...(object.value as ReadonlyMap<string, Value>)].sort(([a], [b]) => Number(a) - Number(b));
    const literals = pairs.map(([key, value]) => ({
      type: 'ArrayLiteral',
      value: [{ type: 'IntegerLiteral', value: Number(key) }, this.#standIn(value)],
    }));
    return super.evaluate({ type: 'ArrayLiteral', value: literals } as unknown as Node, environment);
  }

  /** Strips the given characters from the ends of a string; the library strips white space, whatever characters it is given. */
  #stripped(node: Node, environment: Environment): Value | undefined {
    const [callee, args] = [part(node, 'callee'), (node as unknown as { readonly args: readonly Node[] }).args];
    const ends = callee?.type === 'MemberExpression' && args.length === 1 ? STRIPS.get(valueOf(part(callee, 'property'))) : undefined;
    if (!ends) return undefined;
    const [value, given] = [part(callee, 'object'), args[0]!].map((one) => this.evaluate(one, environment)) as [Value, Value];
    if (value.type !== 'StringValue' || given.type !== 'StringValue') return undefined;
    const [text, characters] = [value.value as string, new Set(given.value as string)];
    let [from, to] = [0, text.length];
    for (let c = ''; ends[0] && from < to; from += c.length)
      if (!characters.has((c = String.fromCodePoint(text.codePointAt(from)!)))) break;
    for (let c = ''; ends[1] && from < to; to -= c.length)
      if (!characters.has((c = [...text.slice(Math.max(from, to - 2), to)].at(-1)!))) break;
    return this.#literal(text.slice(from, to), environment);
  }

  /** A node that evaluates to an existing value. */
  #standIn(value: Value): Node {
    const node = { type: 'StringLiteral', value: '' };
    this.#known.set(node, value);
    return node;
  }

  /** What a loop iterates over: nothing if the variable is undefined, and the characters of a string. */
  #elements(value: Value, environment: Environment): Value {
    if (value.type !== 'UndefinedValue' && value.type !== 'StringValue') return value;
    const characters = value.type === 'StringValue' ? [...(value.value as string)] : [];
    const literals = characters.map((character) => ({ type: 'StringLiteral', value: character }));
    return super.evaluate({ type: 'ArrayLiteral', value: literals } as unknown as Node, environment);
  }

  /** Makes a string value, whose class the library does not export. */
  #literal(text: string, environment: Environment): Value {
    return super.evaluate({ type: 'StringLiteral', value: text } as unknown as Node, environment);
  }

  #note(node: Node): void {
    if (node?.type === 'For') {
      const iterable = part(node, 'iterable');
      const looped = iterable?.type === 'SelectExpression' ? part(iterable, 'lhs') : iterable;
      this.#walked.set(looped, ROUND);
      this.#looped.add(looped);
    } else if (node?.type === 'BinaryExpression') {
      this.#walked.set(part(node, 'left'), 1 / ELEMENTS).set(part(node, 'right'), 1 / ELEMENTS);
      if (SPELLING_OPERATORS.has(valueOf(part(node, 'operator')))) this.#spelled.add(part(node, 'left')).add(part(node, 'right'));
    } else if (node?.type === 'FilterExpression') {
      if (!CHEAP_FILTERS.has(valueOf(part(node, 'filter')))) this.#walked.set(part(node, 'operand'), 1 / ELEMENTS);
      const filter = part(node, 'filter');
      const name = filter?.type === 'CallExpression' ? part(filter, 'callee') : filter;
      if (SPELLING_FILTERS.has(valueOf(name))) this.#spelled.add(part(node, 'operand'));
    } else if (node?.type === 'CallExpression') {
      const callee = part(node, 'callee');
      this.#called.add(callee);
      if (callee?.type === 'MemberExpression') this.#walked.set(part(callee, 'object'), 1 / ELEMENTS);
    }
  }
}

/** A child of a node; the library does not export the types of its nodes. */
function part(node: Node, name: string): Node {
  return (node as unknown as Readonly<Record<string, Node>>)[name];
}

/** A copy of a node with other children. */
const withParts = (node: Node, parts: Readonly<Record<string, Node>>): Node => Object.assign({}, node, parts);

/** Name of an operator, a filter or a property. */
const valueOf = (node: Node): unknown => (node as { readonly value?: unknown } | undefined)?.value;

function isSlice(node: Node): boolean {
  return node?.type === 'MemberExpression' && part(node, 'property')?.type === 'SliceExpression';
}
