/** Text left, voices right; each take is kept with its seed until the page closes. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { writeWav } from '../../../engine/audio/wav.ts';
import { useApp } from '../app.ts';
import { Player } from '../audio/player.ts';
import { EngineNotice } from '../engine-notice.tsx';
import { NumberField, TextField } from '../ui/fields.tsx';
import { Trace } from '../ui/trace.tsx';
import { download } from '../util.ts';
import { WhereSwitch } from '../where-switch.tsx';
import { Take } from './take.ts';
import { VOICES, inOrder } from './voices.ts';

const EXAMPLE = 'The quick brown fox jumps over the lazy dog. Then it sits down by the river and waits for the evening.';
const LONGEST = 4096; // characters; the interface's limit

export function SpeakView() {
  const app = useApp();
  const takes = useSignal<readonly Take[]>([]);
  const current = useSignal<Take | undefined>(undefined);
  const text = useSignal(EXAMPLE);
  const player = useRef(new Player()).current;
  const abort = useRef(new AbortController());
  useEffect(
    () => () => {
      abort.current.abort();
      player.clear();
    },
    [],
  );
  const making = current.value?.status.value === 'making';
  const make = (): void => {
    const { voice, speed, seed } = app.settings.data.peek().speech;
    player.unlock();
    abort.current = new AbortController();
    const take = new Take(text.peek().trim(), voice, speed);
    takes.value = [take, ...takes.peek()];
    current.value = take;
    void take.make(app, player, /^-?\d+$/.test(seed.trim()) ? Number(seed) : undefined, abort.current.signal);
  };
  const stop = (): void => {
    abort.current.abort();
    player.pause();
  };
  return (
    <div class="page" onKeyDown={(event) => event.key === 'Escape' && stop()}>
      <header>
        <h1>Speak</h1>
        <p>Nineteen voices; the same text, voice, speed and seed give the same sound, sample for sample.</p>
      </header>
      <div class="stack">
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            if (making) stop();
            else if (text.value.trim() !== '') make();
          }}
        >
          <label class="field">
            <span class="label">
              <span>Text</span>
              <span>
                {text.value.length} of {LONGEST}
              </span>
            </span>
            <textarea rows={6} maxLength={LONGEST} value={text} onInput={(event) => (text.value = event.currentTarget.value)} />
          </label>
          <div class="row">
            <button class={making ? 'running' : 'primary'}>{making ? 'Stop' : 'Speak'}</button>
          </div>
        </form>
        <EngineNotice task="speech" />
        <ol class="takes">
          {takes.value.map((take) => (
            <TakeItem
              key={take.id}
              take={take}
              player={player}
              isCurrent={take === current.value}
              onPlay={(seconds) => {
                if (take !== current.value) player.load(take.samples, take.rate);
                current.value = take;
                player.playFrom(seconds);
              }}
            />
          ))}
        </ol>
      </div>
      <aside class="panel" aria-label="Voice and settings">
        <SpeakSettings text={text.value} />
      </aside>
    </div>
  );
}

function SpeakSettings({ text }: { text: string }) {
  const app = useApp();
  const { speech } = app.settings.data.value;
  const state = app.sessions.speech.state.value;
  const offered = state.name === 'ready' ? state.info.models.find((model) => model.task === 'speech')?.voices : undefined;
  const voices = offered ? inOrder(offered) : VOICES;
  return (
    <>
      <fieldset>
        <legend class="label">Voice</legend>
        <div class="voices">
          {voices.map((voice) => (
            <label key={voice}>
              <input
                type="radio"
                name="voice"
                value={voice}
                checked={speech.voice === voice}
                onChange={() => app.settings.update('speech', { voice })}
              />
              {voice}
            </label>
          ))}
        </div>
      </fieldset>
      <NumberField
        label="Speed"
        value={speech.speed}
        min={0.25}
        max={4}
        step={0.05}
        onChange={(speed) => app.settings.update('speech', { speed })}
      />
      <TextField label="Seed" value={speech.seed} placeholder="random" onChange={(seed) => app.settings.update('speech', { seed })} />
      <hr />
      <WhereSwitch
        task="speech"
        curl={(base) =>
          `curl ${base}/audio/speech -H 'content-type: application/json' -o speech.wav -d '${JSON.stringify({
            model: 'tts-1',
            input: text,
            voice: speech.voice,
            speed: speech.speed,
            response_format: 'wav',
          }).replaceAll("'", "'\\''")}'`
        }
      />
    </>
  );
}

interface TakeProps {
  readonly take: Take;
  readonly player: Player;
  readonly isCurrent: boolean;
  readonly onPlay: (seconds: number) => void;
}

function TakeItem({ take, player, isCurrent, onPlay }: TakeProps) {
  const app = useApp();
  const playing = isCurrent && player.playing.value;
  const status = take.status.value;
  const seed = take.seed.value;
  return (
    <li class="take" data-status={status}>
      <div class="row spread">
        <span class="number">
          {take.voice} · {take.speed.toFixed(2)}×{seed !== undefined && ` · seed ${seed}`}
        </span>
        <span class="label">{describeWork(take)}</span>
      </div>
      <Trace
        levels={take.levels}
        duration={take.seconds}
        label={`Waveform of ${take.voice}`}
        running={status === 'making'}
        {...(isCurrent && { position: player.position })}
        {...(status !== 'making' && { onSeek: onPlay })}
      />
      <p class="read-along">
        {take.parts.value.flatMap((part) => [
          <button
            type="button"
            key={part.start}
            class={playing && player.position.value >= part.start && player.position.value < part.end ? 'now' : ''}
            onClick={() => onPlay(part.start)}
            disabled={status === 'making'}
          >
            {part.text}
          </button>,
          ' ',
        ])}
      </p>
      {take.failure.value && (
        <p class="failure" role="alert">
          {take.failure.value.message}
        </p>
      )}
      {isCurrent && player.blocked.value && <p class="label">The browser waits for a click before it makes sound.</p>}
      <div class="row">
        <button disabled={take.samples.length === 0 || status === 'making'} onClick={() => (playing ? player.pause() : onPlay(0))}>
          {playing ? 'Pause' : 'Play'}
        </button>
        <button
          disabled={take.samples.length === 0}
          onClick={() =>
            download(`${take.voice}.wav`, new Blob([writeWav(take.samples, take.rate) as Uint8Array<ArrayBuffer>], { type: 'audio/wav' }))
          }
        >
          Download WAV
        </button>
        {seed !== undefined && (
          <button class="plain" onClick={() => app.settings.update('speech', { seed: String(seed), voice: take.voice, speed: take.speed })}>
            Use this seed
          </button>
        )}
      </div>
    </li>
  );
}

/** Length, time to first sound, and how much slower or faster than real time. */
function describeWork(take: Take): string {
  const seconds = take.seconds.value;
  const status = take.status.value;
  if (status === 'making') return seconds === 0 ? 'starting' : `${seconds.toFixed(1)} s so far`;
  if (status === 'failed') return 'failed';
  const work = take.work.value;
  const speed = work === 0 ? '' : ` · ${(work / seconds).toFixed(2)} s of work a second`;
  return `${seconds.toFixed(1)} s · first sound after ${take.firstSound.value.toFixed(1)} s${speed}${status === 'stopped' ? ' · stopped' : ''}`;
}
