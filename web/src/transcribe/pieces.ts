/** Long recordings in pieces, one after the other: a server limits its uploads, and what was heard so far is seen before the end. */
import type { TranscriptSegment, TranscriptionEvent, TranscriptionRequest } from '../../../engine/api.ts';
import { splitAtPauses } from '../../../engine/audio/windows.ts';
import type { AudioWindow } from '../../../engine/audio/windows.ts';
import type { TaskEngine } from '../backend/remote-engine.ts';
import { CAPTURE_RATE } from '../audio/microphone.ts';
import { nextTask } from '../util.ts';

/** Some windows of the model, 1.9 MB as a file, and a few milliseconds of the page's time to cut. */
export const PIECE_SECONDS = 60;

/** The events of one transcription whose sound is given to `engine` in pieces cut at pauses; silent pieces are not given at all. */
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
    // Engines may take the buffer away.
    const call = { ...request, samples: piece.samples.slice(), ...(language && { language }) };
    let heard = '';
    for await (const event of engine.transcribe(call, signal)) {
      if (event.type === 'start') heard = event.language;
      else if (event.type === 'segment') {
        // What was found for the first words holds for the rest, as it would in one go.
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

/** Cut one by one: looking for all pauses of two hours at once would hold up the page. */
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
