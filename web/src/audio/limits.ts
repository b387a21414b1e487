/** The longest recording that is accepted, in seconds: its samples take 460 MB. */
export const MAX_SECONDS = 2 * 3600;

/** What is said of a microphone recording that is ended for its length. */
export const ENOUGH_RECORDED = `${inWords(MAX_SECONDS)} are recorded, and no more are transcribed at once.`;

/** Most bytes of a file whose duration is unknown until it is decoded. */
export const MAX_UNKNOWN_BYTES = 512 * 2 ** 20;

/** Throws an Error with a message for people when a recording is longer than `most` seconds. */
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
