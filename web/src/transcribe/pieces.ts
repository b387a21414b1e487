/** Transcribes long recordings in pieces, one after the other: servers limit uploads, and text appears before the end. */
import type { TranscriptSegment, TranscriptionEvent, TranscriptionRequest } from '../../../engine/api.ts';
import { splitAtPauses } from '../../../engine/audio/windows.ts';
import type { AudioWindow } from '../../../engine/audio/windows.ts';
import type { TaskEngine } from '../backend/remote-engine.ts';
import { CAPTURE_RATE } from '../audio/microphone.ts';
import { nextTask } from '../util.ts';

/** Seconds per piece: some windows of the model, 1.9 MB as a file, and a few milliseconds of the main thread to cut. */
export const PIECE_SECONDS = 60;

/** Yields the events of one transcription, for which `engine` gets the sound in pieces cut at pauses; silent pieces are skipped. */
export async function* transcribeInPieces(
  engine: Pick<TaskEngine, 'transcribe'>,
  { samples, ...request }: TranscriptionRequest,
  signal: AbortSignal,
): AsyncGenerator<TranscriptionEvent> {
  let language = request.language;
  let [id, inputTokens, audioTokens, outputTokens] = [0, 0, 0, 0];
  const texts: string[] = [];
  for (const piece of piecesOf(samples)) {
    await nextTask();
    signal.throwIfAborted();
    if (piece.silent) continue;
    const start = piece.start / CAPTURE_RATE;
    // A copy, because engines may transfer the buffer.
    const call = { ...request, samples: piece.samples.slice(), ...(language && { language }) };
    let heard = '';
    for await (const event of engine.transcribe(call, signal)) {
      if (event.type === 'start') heard = event.language;
      else if (event.type === 'segment') {
        // The language detected in the first piece holds for the rest, as in a single request.
        language ||= heard;
        yield { type: 'segment', segment: { ...shifted(event.segment, start), id: id++ } };
      } else {
        if (event.text.trim() !== '') texts.push(event.text.trim());
        inputTokens += event.inputTokens;
        audioTokens += event.audioTokens;
        outputTokens += event.outputTokens;
      }
    }
  }
  yield { type: 'finish', text: texts.join(' '), duration: samples.length / CAPTURE_RATE, inputTokens, audioTokens, outputTokens };
}

/** Yields the pieces one by one: finding all pauses of two hours at once would block the page. */
function* piecesOf(samples: Float32Array): Generator<AudioWindow> {
  const most = PIECE_SECONDS * CAPTURE_RATE;
  for (let at = 0; at < samples.length;) {
    const [piece] = splitAtPauses(samples.subarray(at, at + most + 1), CAPTURE_RATE, PIECE_SECONDS);
    yield { ...piece!, start: at };
    at += piece!.samples.length;
  }
}

function shifted(segment: TranscriptSegment, by: number): TranscriptSegment {
  return { ...segment, start: segment.start + by, end: segment.end + by };
}
