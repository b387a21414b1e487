/** AltUp's streams in f64; streams [S, R, C]. */
interface Streams {
  readonly values: ArrayLike<number>;
  readonly streams: number;
  readonly room: number;
  readonly columns: number;
}

/** [S, R, C]: each stream and the mix of all that coefs [T, S S] say, of the first `rows` rows; others are 0. */
export function predictStreams({ values, streams, room, columns }: Streams, coefs: ArrayLike<number>, rows: number): Float64Array {
  const out = new Float64Array(streams * room * columns);
  for (let k = 0; k < streams; k++) {
    for (let t = 0; t < rows; t++) {
      for (let c = 0; c < columns; c++) {
        const at = (stream: number): number => (stream * room + t) * columns + c;
        out[at(k)] = values[at(k)]!;
        for (let n = 0; n < streams; n++) out[at(k)]! += coefs[t * streams * streams + k * streams + n]! * values[at(n)]!;
      }
    }
  }
  return out;
}

/**
 * [S, R, C]: each stream and its share (1 + coefs [T, S]) of what a layer changed in the first, which is `passed` [T, C] behind it; `added`
 * [T, C] in all but the first.
 */
export function correctStreams(
  { values, streams, room, columns }: Streams,
  passed: ArrayLike<number>,
  coefs: ArrayLike<number>,
  added: ArrayLike<number>,
  rows: number,
): Float64Array {
  const out = new Float64Array(streams * room * columns);
  for (let k = 0; k < streams; k++) {
    for (let t = 0; t < rows; t++) {
      for (let c = 0; c < columns; c++) {
        const [at, row] = [(k * room + t) * columns + c, t * columns + c];
        out[at] = values[at]! + (1 + coefs[t * streams + k]!) * (passed[row]! - values[row]!) + (k > 0 ? added[row]! : 0);
      }
    }
  }
  return out;
}
