/**
 * Reads Python pickles of tensors without running anything. A pickle is a program that names functions to call; here only those in
 * `FUNCTIONS` have a meaning, which is to describe a tensor, and every other name is refused. Opcodes: Lib/pickletools.py of CPython.
 */
import { EngineError } from '../../errors.ts';
import { describe } from '../../util/json.ts';

/** A tensor as torch pickles it. */
export class PickledTensor {
  readonly storage: PickledStorage;
  /** Index of the first element in the storage. */
  readonly offset: number;
  readonly shape: readonly number[];
  /** Strides by axis, in elements. */
  readonly strides: readonly number[];

  constructor(storage: PickledStorage, offset: number, shape: readonly number[], strides: readonly number[]) {
    this.storage = storage;
    this.offset = offset;
    this.shape = shape;
    this.strides = strides;
  }
}

/** A storage: numbers of one type in a file of the archive. */
export class PickledStorage {
  /** torch's name of the type, e.g. FloatStorage. */
  readonly type: string;
  /** Name of the file below data/. */
  readonly key: string;
  readonly elements: number;

  constructor(type: string, key: string, elements: number) {
    this.type = type;
    this.key = key;
    this.elements = elements;
  }
}

/** A pickled value: lists and tuples are arrays, dictionaries are maps. */
export type Pickled = null | boolean | number | string | PickledTensor | PickledStorage | PickledGlobal | PickledList | PickledMap;
export type PickledList = Pickled[];
export type PickledMap = Map<Pickled, Pickled>;

class PickledGlobal {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

const STORAGE = /^torch (Float|Half|BFloat16|Double|Long|Int|Short|Char|Byte|Bool)Storage$/;

/** Meanings of the functions that a checkpoint calls. */
const FUNCTIONS: ReadonlyMap<string, (args: PickledList) => Pickled | undefined> = new Map<
  string,
  (args: PickledList) => Pickled | undefined
>([
  ['collections OrderedDict', (args) => (args.length === 0 ? new Map() : undefined)],
  ['torch._utils _rebuild_tensor_v2', rebuildTensor],
]);

/** Most bytes of a pickle; 550 tensors take 60 kB. */
export const MAX_PICKLE_BYTES = 4 * 2 ** 20;
/** Most opcodes, since each may make a dictionary of two hundred bytes; Kokoro's pickle has 15,000. */
const MAX_STEPS = 2 ** 18;
const MAX_RANK = 8;

/** The value that a pickle describes; throws EngineError('invalid_model') that names the file and what in it is not allowed. */
export function readPickle(path: string, bytes: Uint8Array): Pickled {
  if (bytes.length > MAX_PICKLE_BYTES) throw new EngineError('invalid_model', `${path} has ${bytes.length} bytes; at most ${MAX_PICKLE_BYTES} are read`); // prettier-ignore
  return new Unpickler(path, bytes).run();
}

const MARK = Symbol('mark');
type Item = Pickled | typeof MARK;

/** The stack machine that runs a pickle. */
class Unpickler {
  readonly #path: string;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #memo = new Map<number, Pickled>();
  readonly #stack: Item[] = [];
  #at = 0;

  constructor(path: string, bytes: Uint8Array) {
    this.#path = path;
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  run(): Pickled {
    for (let steps = 0; ; steps++) {
      if (steps === MAX_STEPS) this.refuse(`it has more than ${MAX_STEPS} opcodes; no more are read`);
      const opcode = this.number('getUint8', 1);
      if (opcode === STOP) return this.pop();
      const step = OPCODES.get(opcode);
      if (!step) this.refuse(`it has the opcode 0x${opcode.toString(16)} at byte ${this.#at - 1}, which no checkpoint needs`);
      step(this);
    }
  }

  number(get: 'getUint8' | 'getUint16' | 'getUint32' | 'getInt32', size: number): number {
    return this.#view[get](this.#advance(size), true);
  }

  double(): number {
    return this.#view.getFloat64(this.#advance(8));
  }

  skip(length: number): void {
    this.#advance(length);
  }

  text(length: number): string {
    const at = this.#advance(length);
    const text = new TextDecoder().decode(this.#bytes.subarray(at, at + length));
    return /\p{Cc}/u.test(text) ? this.refuse(`the text at byte ${at} is no name: ${describe(text)}`) : text;
  }

  line(): string {
    const end = this.#bytes.indexOf(0x0a, this.#at);
    if (end < 0) this.refuse('it is cut short');
    const text = this.text(end - this.#at);
    this.#at++;
    return text;
  }

  /** A little-endian integer of this many bytes. */
  long(length: number): number {
    const at = this.#advance(length);
    let value = 0n;
    for (let i = length - 1; i >= 0; i--) value = (value << 8n) | BigInt(this.#bytes[at + i]!);
    if (length > 0 && this.#bytes[at + length - 1]! & 0x80) value -= 1n << BigInt(8 * length);
    return Number(value);
  }

  push(item: Item): void {
    this.#stack.push(item);
  }

  pop(): Pickled {
    const item = this.#stack.pop();
    return item === undefined || item === MARK ? this.refuse('its stack is empty') : item;
  }

  top(): Pickled {
    const item = this.#stack.at(-1);
    return item === undefined || item === MARK ? this.refuse('its stack is empty') : item;
  }

  /** Pops the items above the last mark, and the mark. */
  popToMark(): PickledList {
    const mark = this.#stack.lastIndexOf(MARK);
    if (mark < 0) this.refuse('its stack has no mark');
    const items = this.#stack.splice(mark);
    return items.slice(1) as PickledList;
  }

  keep(index: number): void {
    this.#memo.set(index, this.top());
  }

  get kept(): number {
    return this.#memo.size;
  }

  recall(index: number): void {
    const value = this.#memo.get(index);
    this.push(value === undefined ? this.refuse(`it recalls the value ${index}, which it never kept`) : value);
  }

  /** The name of a function or type that has a meaning here; refuses others. */
  name(module: string, name: string): void {
    const full = `${module} ${name}`;
    if (!FUNCTIONS.has(full) && !STORAGE.test(full)) this.refuse(`it names ${`${module}.${name}`.slice(0, 120)}, which is not run: a checkpoint of tensors needs only their storages, torch._utils._rebuild_tensor_v2 and collections.OrderedDict`); // prettier-ignore
    this.push(new PickledGlobal(full));
  }

  call(): void {
    const args = this.pop();
    const callee = this.pop();
    const run = callee instanceof PickledGlobal ? FUNCTIONS.get(callee.name) : undefined;
    const value = run && Array.isArray(args) ? run(args) : undefined;
    if (value === undefined) this.refuse(`it calls ${callee instanceof PickledGlobal ? callee.name.replace(' ', '.') : 'what is no function'} with arguments that make no tensor`); // prettier-ignore
    this.push(value);
  }

  /** Replaces a persistent id ('storage', type, key, location, elements) by the storage, a file of the archive. */
  storage(): void {
    const id = this.pop();
    const [kind, type, key, , elements] = Array.isArray(id) ? id : [];
    const isType = type instanceof PickledGlobal && STORAGE.test(type.name);
    if (kind !== 'storage' || !isType || typeof key !== 'string' || !isCount(elements)) this.refuse('it refers to something outside that is no storage'); // prettier-ignore
    this.push(new PickledStorage(type.name.replace('torch ', ''), key, elements));
  }

  assign(pairs: PickledList): void {
    const target = this.top();
    if (!(target instanceof Map) || pairs.length % 2 !== 0) this.refuse('it sets items of what is no dictionary');
    for (let i = 0; i < pairs.length; i += 2) target.set(pairs[i]!, pairs[i + 1]!);
  }

  append(items: PickledList): void {
    const target = this.top();
    if (!Array.isArray(target)) this.refuse('it appends to what is no list');
    for (const item of items) target.push(item);
  }

  /** The state of an OrderedDict is its `_metadata`: versions of modules, which no weight needs. */
  build(): void {
    this.pop();
    if (!(this.top() instanceof Map)) this.refuse('it gives a state to what is no dictionary');
  }

  refuse(why: string): never {
    throw new EngineError('invalid_model', `${this.#path}: ${why}`);
  }

  #advance(length: number): number {
    const at = this.#at;
    if (at + length > this.#bytes.length) this.refuse('it is cut short');
    this.#at = at + length;
    return at;
  }
}

const STOP = 0x2e;

const OPCODES: ReadonlyMap<number, (machine: Unpickler) => void> = new Map([
  [0x80, (m) => m.skip(1)], // PROTO
  [0x95, (m) => m.skip(8)], // FRAME
  [0x28, (m) => m.push(MARK)], // MARK
  [0x7d, (m) => m.push(new Map())], // EMPTY_DICT
  [0x5d, (m) => m.push([])], // EMPTY_LIST
  [0x29, (m) => m.push([])], // EMPTY_TUPLE
  [0x4e, (m) => m.push(null)], // NONE
  [0x88, (m) => m.push(true)], // NEWTRUE
  [0x89, (m) => m.push(false)], // NEWFALSE
  [0x4a, (m) => m.push(m.number('getInt32', 4))], // BININT
  [0x4b, (m) => m.push(m.number('getUint8', 1))], // BININT1
  [0x4d, (m) => m.push(m.number('getUint16', 2))], // BININT2
  [0x8a, (m) => m.push(m.long(m.number('getUint8', 1)))], // LONG1
  [0x47, (m) => m.push(m.double())], // BINFLOAT
  [0x58, (m) => m.push(m.text(m.number('getUint32', 4)))], // BINUNICODE
  [0x8c, (m) => m.push(m.text(m.number('getUint8', 1)))], // SHORT_BINUNICODE
  [0x71, (m) => m.keep(m.number('getUint8', 1))], // BINPUT
  [0x72, (m) => m.keep(m.number('getUint32', 4))], // LONG_BINPUT
  [0x94, (m) => m.keep(m.kept)], // MEMOIZE
  [0x68, (m) => m.recall(m.number('getUint8', 1))], // BINGET
  [0x6a, (m) => m.recall(m.number('getUint32', 4))], // LONG_BINGET
  [0x74, (m) => m.push(m.popToMark())], // TUPLE
  [0x85, (m) => m.push([m.pop()])], // TUPLE1
  [0x86, (m) => m.push([m.pop(), m.pop()].reverse())], // TUPLE2
  [0x87, (m) => m.push([m.pop(), m.pop(), m.pop()].reverse())], // TUPLE3
  [0x61, (m) => m.append([m.pop()])], // APPEND
  [0x65, (m) => m.append(m.popToMark())], // APPENDS
  [0x73, (m) => m.assign([m.pop(), m.pop()].reverse())], // SETITEM
  [0x75, (m) => m.assign(m.popToMark())], // SETITEMS
  [0x63, (m) => m.name(m.line(), m.line())], // GLOBAL
  [0x93, (m) => nameOnStack(m)], // STACK_GLOBAL
  [0x52, (m) => m.call()], // REDUCE
  [0x51, (m) => m.storage()], // BINPERSID
  [0x62, (m) => m.build()], // BUILD
]);

function nameOnStack(machine: Unpickler): void {
  const name = machine.pop();
  const module = machine.pop();
  if (typeof name !== 'string' || typeof module !== 'string') machine.refuse('it names a function by what is no text');
  machine.name(module, name);
}

/** (storage, offset, size, stride, requires_grad, hooks[, metadata]) */
function rebuildTensor([storage, offset, shape, strides]: PickledList): PickledTensor | undefined {
  const isRight =
    storage instanceof PickledStorage && isCount(offset) && isCounts(shape) && isCounts(strides) && shape.length === strides.length;
  return isRight ? new PickledTensor(storage, offset, shape, strides) : undefined;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isCounts = (value: unknown): value is number[] => Array.isArray(value) && value.length <= MAX_RANK && value.every(isCount);
