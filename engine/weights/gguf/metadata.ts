/** A GGUF file's metadata by key, with typed access. */
import { EngineError } from '../../errors.ts';
import { describeValue } from './header.ts';
import type { GgufHeader, GgufValue } from './header.ts';

/** Typed look-ups; each throws EngineError('invalid_model') that names the file, the key and what was found. */
export class Metadata {
  /** Path of the file, for messages. */
  readonly path: string;
  readonly #values: GgufHeader['metadata'];

  constructor(path: string, values: GgufHeader['metadata']) {
    this.path = path;
    this.#values = values;
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  get(key: string): GgufValue | undefined {
    return this.#values.get(key);
  }

  refuse(why: string): never {
    throw new EngineError('invalid_model', `${this.path}: ${why}`);
  }

  number(key: string): number | undefined {
    return this.#typed(key, 'a number', (value): value is number => typeof value === 'number' && Number.isFinite(value));
  }

  text(key: string): string | undefined {
    return this.#typed(key, 'a text', (value): value is string => typeof value === 'string');
  }

  flag(key: string): boolean | undefined {
    return this.#typed(key, 'true or false', (value): value is boolean => typeof value === 'boolean');
  }

  texts(key: string): readonly string[] | undefined {
    return this.#typed(key, 'a list of texts', (value): value is readonly string[] => isList(value, 'string'));
  }

  numbers(key: string): readonly number[] | undefined {
    return this.#typed(key, 'a list of numbers', (value): value is readonly number[] => isList(value, 'number'));
  }

  /**
   * A number that holds for every layer: stored as one, or as a list that has it for every layer, or 0 for layers without the thing
   * counted.
   */
  everyLayer(key: string): number | undefined {
    const value = this.get(key);
    if (!Array.isArray(value)) return this.number(key);
    const [first, ...others] = this.numbers(key)!.filter((number) => number !== 0);
    if (first === undefined || others.some((other) => other !== first))
      this.refuse(`${key} differs from layer to layer, which is not supported`);
    return first;
  }

  /** One number per layer, stored as a list, or as one number for all layers. */
  byLayer(key: string, layers: number): readonly number[] {
    const value = Array.isArray(this.get(key)) ? this.numbers(key) : this.number(key);
    if (value === undefined) this.refuse(`${key} is missing`);
    if (typeof value === 'number') return new Array<number>(layers).fill(value);
    if (value.length < layers) this.refuse(`${key} has ${value.length} numbers for ${layers} layers`);
    return value.slice(0, layers);
  }

  #typed<T extends GgufValue>(key: string, expected: string, is: (value: GgufValue) => value is T): T | undefined {
    const value = this.get(key);
    if (value === undefined || is(value)) return value;
    return this.refuse(`${key} is ${describeValue(value)}, expected ${expected}`);
  }
}

function isList(value: GgufValue, type: 'string' | 'number'): boolean {
  return Array.isArray(value) && value.every((element) => typeof element === type);
}
