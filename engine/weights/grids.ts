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
  if (!grid) made.set(name, (grid = decoded(GRID_DATA[name], name.startsWith('IQ3') ? 4 : 2)));
  return grid;
}

/** Digits of `bits` bits in base64, four per word. */
function decoded(data: string, bits: 2 | 4): Grid {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  const digits = new Uint8Array((bytes.length * 8) / bits);
  const inByte = 8 / bits;
  for (let i = 0; i < digits.length; i++) digits[i] = (bytes[Math.floor(i / inByte)]! >> ((i % inByte) * bits)) & (2 ** bits - 1);
  return new Uint32Array(digits.buffer);
}
