/** Row lookup: table [V, C]. */
export function embedding(ids: ArrayLike<number>, table: ArrayLike<number>, columns: number): Float64Array {
  const out = new Float64Array(ids.length * columns);
  for (let t = 0; t < ids.length; t++) for (let c = 0; c < columns; c++) out[t * columns + c] = table[ids[t]! * columns + c]!;
  return out;
}
