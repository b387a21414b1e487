/** The grids of the IQ types: vectors that codes are taken from. */
import { GRID_DATA } from './grid-data.ts';

/** A grid by the type that has it; IQ1_M has that of IQ1_S. */
export type GridName = keyof typeof GRID_DATA;

/** Vectors of a grid in words of four digits, one per byte; a vector has two words, or one where it has four elements (IQ3). */
export type Grid = Uint32Array<ArrayBuffer>;

const made = new Map<GridName, Grid>();

/** Returns the grid, decoded once. */
export function gridOf(name: GridName): Grid {
  let grid = made.get(name);
  if (!grid) made.set(name, (grid = name.startsWith('IQ3') ? decoded(GRID_DATA[name], 8, 4) : decoded(GRID_DATA[name], 3, 8)));
  return grid;
}

/** The vectors of a set of numbers: their `length` digits in `base`, the lowest first. */
function decoded(data: string, base: 3 | 8, length: 4 | 8): Grid {
  const bits = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  const digits: number[] = [];
  for (let number = 0; number < base ** length; number++) {
    if (((bits[number >> 3]! >> (number & 7)) & 1) === 0) continue;
    for (let i = 0; i < length; i++) digits.push(Math.floor(number / base ** i) % base);
  }
  return new Uint32Array(Uint8Array.from(digits).buffer);
}
