/** Whisper's choice of the next token, from the tokens so far (the kernel keeps a summary of them instead). */
export interface ConstrainedStep {
  readonly logits: ArrayLike<number>;
  readonly banned: (token: number) => boolean;
  /** Tokens chosen before, oldest first. */
  readonly history: readonly number[];
  readonly timestampBegin: number;
  readonly eos: number;
  readonly maxInitialTimestamp: number;
  readonly timestamps: boolean;
}

/** [token, log-probability over the allowed tokens]. */
export function constrainedToken(step: ConstrainedStep): [number, number] {
  return tokenCandidates(step, 1)[0]!;
}

/** The best `count` of the allowed tokens with their log-probabilities, best first, ties to the lower token. */
export function tokenCandidates(step: ConstrainedStep, count: number): [number, number][] {
  const scores = allowedScores(step);
  const norm = logSumExp(scores);
  const allowed = [...scores.keys()].filter((token) => scores[token]! > -Infinity);
  return allowed
    .sort((a, b) => scores[b]! - scores[a]! || a - b)
    .slice(0, count)
    .map((token) => [token, scores[token]! - norm]);
}

/** The logits, -Infinity where a token is forbidden. */
function allowedScores(step: ConstrainedStep): Float64Array {
  const { logits, banned, history, timestampBegin, eos } = step;
  const scores = Float64Array.from(logits, (logit, token) => (banned(token) ? -Infinity : logit));
  const ban = (from: number, to: number): unknown => scores.fill(-Infinity, from, to);
  if (step.timestamps) {
    const isTimestamp = (token: number | undefined): boolean => token !== undefined && token >= timestampBegin;
    const lastIs = isTimestamp(history.at(-1));
    const beforeIs = history.length < 2 || isTimestamp(history.at(-2));
    if (lastIs && beforeIs) ban(timestampBegin, scores.length);
    if (lastIs && !beforeIs) ban(0, eos);
    const timestamps = history.filter(isTimestamp);
    if (timestamps.length > 0) ban(timestampBegin, timestamps.at(-1)! + (lastIs && !beforeIs ? 0 : 1));
    if (history.length === 0) {
      ban(0, timestampBegin);
      ban(timestampBegin + step.maxInitialTimestamp + 1, scores.length);
    }
    if (logSumExp(scores.subarray(timestampBegin)) > Math.max(...scores.subarray(0, timestampBegin))) ban(0, timestampBegin);
  }
  return scores;
}

/** Log-sum-exp of all values; -Infinity for none. */
export function logSumExp(values: Float64Array): number {
  const highest = Math.max(...values);
  if (highest === -Infinity) return -Infinity;
  return highest + Math.log(values.reduce((sum, value) => sum + Math.exp(value - highest), 0));
}
