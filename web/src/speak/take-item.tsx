/** A take: its waveform, its text to follow, and its buttons. */
import { writeWav } from '../../../engine/audio/wav.ts';
import { useApp } from '../app.ts';
import type { App } from '../app.ts';
import type { Player } from '../audio/player.ts';
import { Trace } from '../ui/trace.tsx';
import { download, sentence } from '../util.ts';
import type { Take } from './take.ts';
import { describeWork } from './work-words.ts';

interface TakeProps {
  readonly take: Take;
  readonly player: Player;
  readonly isCurrent: boolean;
  readonly onPlay: (seconds: number) => void;
}

export function TakeItem({ take, player, isCurrent, onPlay }: TakeProps) {
  const app = useApp();
  const playing = isCurrent && player.playing.value;
  const status = take.status.value;
  const seed = take.seed.value;
  const isSilent = take.seconds.value === 0;
  return (
    <li class="take" data-status={status}>
      <div class="row spread">
        <span class="number">
          {take.voice} · {take.speed.toFixed(2)}×{seed !== undefined && ` · seed ${seed}`}
        </span>
        <span class="label">
          {describeWork({ status, seconds: take.seconds.value, firstSound: take.firstSound.value, work: take.work.value })}
        </span>
      </div>
      {(!isSilent || status === 'making') && (
        <Trace
          levels={take.levels}
          duration={take.seconds}
          label={`Waveform of ${take.voice}`}
          running={status === 'making'}
          {...(isCurrent && { position: player.position })}
          {...(status !== 'making' && { onSeek: onPlay })}
        />
      )}
      <ReadAlong take={take} player={player} playing={playing} onPlay={onPlay} />
      {take.failure.value && (
        <p class="failure" role="alert">
          {sentence(take.failure.value.message)}
        </p>
      )}
      {isCurrent && player.blocked.value && <p class="label">The browser waits for a click before it makes sound.</p>}
      <div class="row">
        {!isSilent && (
          <>
            <button disabled={status === 'making'} onClick={() => (playing ? player.pause() : onPlay(0))}>
              {playing ? 'Pause' : 'Play'}
            </button>
            <button onClick={() => void save(app, take)}>Download WAV</button>
          </>
        )}
        {seed !== undefined && (
          <button class="plain" onClick={() => reuse(app, take, seed)}>
            Use this seed
          </button>
        )}
        <button class="plain" onClick={() => app.speech.remove(take)}>
          Delete
        </button>
      </div>
    </li>
  );
}

function reuse(app: App, { voice, speed }: Take, seed: number): void {
  app.choices.setVoice(voice);
  app.settings.update('speech', { seed: String(seed), speed });
}

async function save(app: App, take: Take): Promise<void> {
  const wav = writeWav(await take.sound(app), take.rate) as Uint8Array<ArrayBuffer>;
  download(`${take.voice}.wav`, new Blob([wav], { type: 'audio/wav' }));
}

/** The take's text, in which the part being played is marked and a click plays from there. Without sound it is plain text. */
function ReadAlong({ take, player, playing, onPlay }: Omit<TakeProps, 'isCurrent'> & { playing: boolean }) {
  // Read only while it moves here: otherwise every take would be rendered again for each frame of another's sound.
  const at = playing ? player.position.value : -1;
  if (take.parts.value.length === 0) {
    return (
      <p class="unspoken" dir="auto">
        {take.text}
      </p>
    );
  }
  return (
    <p class="read-along" dir="auto">
      {take.parts.value.flatMap((part) => [
        <button
          type="button"
          key={part.start}
          class={at >= part.start && at < part.end ? 'now' : ''}
          onClick={() => onPlay(part.start)}
          disabled={take.status.value === 'making'}
        >
          {part.text}
        </button>,
        ' ',
      ])}
    </p>
  );
}
