/** A transcript under its waveform, to follow, correct and save. */
import { useComputed, useSignal } from '@preact/signals';
import type { TargetedEvent } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { useApp } from '../app.ts';
import type { Player } from '../audio/player.ts';
import { Trace } from '../ui/trace.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { download, formatTenths, formatTime, sentence } from '../util.ts';
import { FORMATS, formatTranscript } from './formats.ts';
import type { Format } from './formats.ts';
import type { Transcript } from './transcript.ts';

interface Props {
  readonly transcript: Transcript;
  readonly player: Player;
}

export function Result({ transcript, player }: Props) {
  const { transcription } = useApp();
  const status = transcript.status.value;
  const segments = transcript.segments.value;
  const heard = status === 'hearing' ? (segments.at(-1)?.end ?? 0) : transcript.duration.value;
  return (
    <section class="stack transcript" data-status={status} aria-label={`Transcript of ${transcript.name}`}>
      <div class="row spread">
        <span class="number">{transcript.name}</span>
        <span class="label">{describe(transcript)}</span>
      </div>
      <Trace
        levels={transcript.levels}
        duration={transcript.duration}
        position={player.position}
        label="Waveform"
        onSeek={(at) => void transcription.play(transcript, at)}
      />
      {status === 'hearing' && <progress value={heard} max={transcript.duration.value} aria-label="Transcribed so far" />}
      {transcript.failure.value && (
        <p class="failure" role="alert">
          {sentence(transcript.failure.value.message)}
        </p>
      )}
      {status === 'done' && segments.length === 0 && <p>No speech was found in this recording.</p>}
      <Segments transcript={transcript} player={player} />
      <ResultActions transcript={transcript} player={player} />
    </section>
  );
}

function Segments({ transcript, player }: Props) {
  const app = useApp();
  // Leaving the view removes a focused text without a blur event.
  useEffect(() => () => transcript.settle(), [transcript]);
  // Computed, so that a transcript of an hour is not rendered again for each frame of its sound.
  const now = useComputed(() => {
    const at = player.playing.value ? player.position.value : -1;
    return transcript.segments.value.find(({ start, end }) => at >= start && at < end)?.id;
  });
  const clock = transcript.duration.value < 60 ? formatTenths : formatTime;
  return (
    <ol class="segments-list">
      {transcript.segments.value.map((segment) => (
        <li key={segment.id} class={segment.id === now.value ? 'now' : ''}>
          <button
            class="plain number"
            onClick={() => void app.transcription.play(transcript, segment.start)}
            aria-label={`Play from ${clock(segment.start)}`}
          >
            {clock(segment.start)}
          </button>
          <SegmentText
            text={segment.text.trim()}
            onInput={(text) => transcript.correct(app, segment, text)}
            onLeave={() => transcript.settle()}
          />
        </li>
      ))}
    </ol>
  );
}

interface SegmentTextProps {
  readonly text: string;
  readonly onInput: (text: string) => void;
  readonly onLeave: () => void;
}

/**
 * A segment's text, which can be corrected. The element holds it, and not the rendering: a browser makes nodes of its own where lines are
 * typed or pasted, and what other tabs store must not move the caret of a person who types.
 */
function SegmentText({ text, onInput, onLeave }: SegmentTextProps) {
  const element = useRef<HTMLParagraphElement>(null);
  const isFocused = useSignal(false);
  useLayoutEffect(() => {
    const { textContent, childElementCount } = element.current!;
    // Only what differs is replaced: a focus that comes back to the window finds its caret where it was.
    if (!isFocused.peek() && (textContent !== text || childElementCount > 0)) element.current!.textContent = text;
  }, [text, isFocused.value]);
  return (
    <p
      ref={element}
      dir="auto"
      contentEditable="plaintext-only"
      role="textbox"
      aria-label="Text, can be corrected"
      onFocus={() => (isFocused.value = true)}
      onInput={(event) => onInput(typedText(event))}
      onBlur={() => {
        onLeave();
        isFocused.value = false;
      }}
    />
  );
}

/** The text of an element that is typed into, as one line: with a break, words of two lines would be one word. */
const typedText = ({ currentTarget }: TargetedEvent<HTMLElement>): string => currentTarget.innerText.replace(/\s*\n\s*/g, ' ');

function ResultActions({ transcript, player }: Props) {
  const app = useApp();
  const playing = player.playing.value;
  const segments = transcript.segments.value;
  const play = (): void => {
    const atEnd = player.position.value >= player.duration.value - 0.01;
    void app.transcription.play(transcript, atEnd ? 0 : player.position.value);
  };
  const save = (format: Format): void =>
    download(`${transcript.name.replace(/\.\w+$/, '')}.${format}`, new Blob([formatTranscript(format, segments)], { type: 'text/plain' }));
  return (
    <div class="row">
      <button onClick={() => (playing ? player.pause() : play())}>{playing ? 'Pause' : 'Play'}</button>
      {transcript.status.value === 'hearing' ? (
        transcript.isHere && (
          <button class="running" onClick={() => transcript.stop()}>
            Stop
          </button>
        )
      ) : (
        <button onClick={() => void app.transcription.run(transcript)}>Again</button>
      )}
      {segments.length > 0 && (
        <>
          <CopyButton text={() => formatTranscript('txt', transcript.segments.peek())} />
          <span class="row saves">
            <span class="label">Save as</span>
            {FORMATS.map((format) => (
              <button key={format} class="plain" aria-label={`Save as ${format.toUpperCase()}`} onClick={() => save(format)}>
                {format.toUpperCase()}
              </button>
            ))}
          </span>
        </>
      )}
      <button class="plain" onClick={() => app.transcription.remove(transcript)}>
        Delete
      </button>
    </div>
  );
}

function describe(transcript: Transcript): string {
  const status = transcript.status.value;
  const duration = transcript.duration.value;
  if (status === 'hearing') return transcript.isHere ? 'transcribing' : 'transcribing in another tab';
  if (status === 'done') return `${duration.toFixed(1)} s of sound in ${transcript.work.value.toFixed(1)} s`;
  return status === 'idle' ? '' : status;
}
