/** The longest recording that is transcribed at once, s: its samples take 460 MB. */
export const MAX_SECONDS = 2 * 3600;

/** What may be read of a file whose length nobody knows before it is decoded. */
export const MAX_UNKNOWN_BYTES = 512 * 2 ** 20;

/** Throws an Error for people when a recording is longer than the limit. */
export function checkLength(seconds: number, most: number = MAX_SECONDS): void {
  if (seconds <= most) return;
  throw new Error(`it lasts ${inWords(seconds)}, and at most ${inWords(most)} are transcribed at once; cut it into parts`);
}

function inWords(seconds: number): string {
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 120) return `${minutes} minutes`;
  const rest = minutes % 60;
  return `${Math.floor(minutes / 60)} hours${rest === 0 ? '' : ` ${rest} minutes`}`;
}
