/** Drop a file, choose one, or record; what is heard appears under the waveform and may be corrected. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useApp } from '../app.ts';
import { decodeAudio } from '../audio/decode.ts';
import { CAPTURE_RATE, Microphone } from '../audio/microphone.ts';
import { Player } from '../audio/player.ts';
import { EngineNotice } from '../engine-notice.tsx';
import { TextField } from '../ui/fields.tsx';
import { Trace } from '../ui/trace.tsx';
import { download, formatTime } from '../util.ts';
import { WhereSwitch } from '../where-switch.tsx';
import { FORMATS, formatTranscript } from './formats.ts';
import { Transcript } from './transcript.ts';

export function TranscribeView() {
  const app = useApp();
  const transcript = useSignal<Transcript | undefined>(undefined);
  const problem = useSignal('');
  const player = useRef(new Player()).current;
  useEffect(
    () => () => {
      transcript.peek()?.stop();
      player.clear();
    },
    [],
  );
  const hear = (name: string, samples: Float32Array): void => {
    problem.value = samples.length === 0 ? 'There is no sound in it.' : '';
    if (samples.length === 0) return;
    transcript.peek()?.stop();
    player.load(samples, CAPTURE_RATE);
    transcript.value = new Transcript(name, samples);
    void transcript.value.run(app);
  };
  const open = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    problem.value = '';
    try {
      hear(file.name, await decodeAudio(file));
    } catch (error) {
      problem.value = `${file.name}: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  return (
    <div class="page">
      <header>
        <h1>Transcribe</h1>
        <p>Speech from a file or the microphone becomes text with times. English, with the model that comes along.</p>
      </header>
      <div class="stack">
        <Intake onFile={open} onRecorded={(samples) => hear('recording', samples)} />
        {problem.value && (
          <p class="failure" role="alert">
            {problem}
          </p>
        )}
        <EngineNotice task="transcription" onRestarted={() => void transcript.peek()?.run(app)} />
        {transcript.value && <Result transcript={transcript.value} player={player} />}
      </div>
      <aside class="panel" aria-label="Settings">
        <TranscribeSettings />
      </aside>
    </div>
  );
}

function TranscribeSettings() {
  const app = useApp();
  const { transcription } = app.settings.data.value;
  return (
    <>
      <WhereSwitch
        task="transcription"
        curl={(base) => `curl ${base}/audio/transcriptions -F file=@recording.wav -F model=parley-transcribe -F response_format=json`}
      />
      <hr />
      <TextField
        label="Language"
        value={transcription.language}
        placeholder="found by the model"
        onChange={(language) => app.settings.update('transcription', { language: language.trim() })}
      />
      <label class="field">
        <span class="label">Names and words to expect</span>
        <textarea
          rows={3}
          value={transcription.prompt}
          onChange={(event) => app.settings.update('transcription', { prompt: event.currentTarget.value })}
        />
      </label>
    </>
  );
}

function Intake({ onFile, onRecorded }: { onFile: (file: File | undefined) => void; onRecorded: (samples: Float32Array) => void }) {
  const app = useApp();
  const over = useSignal(false);
  const recording = useSignal(false);
  const problem = useSignal('');
  const microphone = useRef(new Microphone()).current;
  useEffect(() => () => void microphone.stop(), []);
  const toggle = async (): Promise<void> => {
    if (recording.value) {
      recording.value = false;
      onRecorded(await microphone.stop());
      return;
    }
    problem.value = '';
    try {
      await microphone.start(app.settings.data.peek().microphone);
      recording.value = true;
    } catch (error) {
      problem.value = error instanceof Error ? error.message : String(error);
    }
  };
  return (
    <div
      class={`intake ${over.value ? 'over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault();
        over.value = true;
      }}
      onDragLeave={() => (over.value = false)}
      onDrop={(event) => {
        event.preventDefault();
        over.value = false;
        onFile(event.dataTransfer?.files[0]);
      }}
    >
      <div class="row">
        <label class="button primary">
          Choose a file
          <input
            type="file"
            accept="audio/*,video/*,.wav"
            class="hidden"
            onChange={(event) => {
              onFile(event.currentTarget.files?.[0]);
              event.currentTarget.value = '';
            }}
          />
        </label>
        <button class={recording.value ? 'running' : ''} onClick={() => void toggle()}>
          {recording.value ? `Stop recording, ${formatTime(microphone.seconds.value)}` : 'Record'}
        </button>
        <span class="label">or drop a file here</span>
      </div>
      {recording.value && <Trace levels={microphone.levels} label="Microphone level" running />}
      {problem.value && (
        <p class="failure" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}

function Result({ transcript, player }: { transcript: Transcript; player: Player }) {
  const app = useApp();
  const status = transcript.status.value;
  const segments = transcript.segments.value;
  const playing = player.playing.value;
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
        onSeek={(at) => player.playFrom(at)}
      />
      {status === 'hearing' && <progress value={heard} max={transcript.duration.value} aria-label="Heard so far" />}
      {transcript.failure.value && (
        <p class="failure" role="alert">
          {transcript.failure.value.message}
        </p>
      )}
      {status === 'done' && segments.length === 0 && <p>No speech was found in this recording.</p>}
      <ol class="segments-list">
        {segments.map((segment) => (
          <li
            key={segment.id}
            class={playing && player.position.value >= segment.start && player.position.value < segment.end ? 'now' : ''}
          >
            <button
              class="plain number"
              onClick={() => player.playFrom(segment.start)}
              aria-label={`Play from ${formatTime(segment.start)}`}
            >
              {formatTime(segment.start)}
            </button>
            <p
              contentEditable="plaintext-only"
              role="textbox"
              aria-label="Text, may be corrected"
              onBlur={(event) => transcript.correct(segment, event.currentTarget.textContent ?? '')}
            >
              {segment.text.trim()}
            </p>
          </li>
        ))}
      </ol>
      <div class="row">
        <button
          onClick={() =>
            playing ? player.pause() : player.playFrom(player.position.value >= player.duration.value - 0.01 ? 0 : player.position.value)
          }
        >
          {playing ? 'Pause' : 'Play'}
        </button>
        {status === 'hearing' ? (
          <button class="running" onClick={() => transcript.stop()}>
            Stop
          </button>
        ) : (
          <button onClick={() => void transcript.run(app)}>Again</button>
        )}
        {segments.length > 0 &&
          FORMATS.map((format) => (
            <button
              key={format}
              class="plain"
              onClick={() =>
                download(
                  `${transcript.name.replace(/\.\w+$/, '')}.${format}`,
                  new Blob([formatTranscript(format, segments)], { type: 'text/plain' }),
                )
              }
            >
              {format.toUpperCase()}
            </button>
          ))}
      </div>
    </section>
  );
}

function describe(transcript: Transcript): string {
  const status = transcript.status.value;
  const duration = transcript.duration.value;
  if (status === 'hearing') return 'hearing';
  if (status === 'done') return `${transcript.work.value.toFixed(1)} s of work for ${duration.toFixed(1)} s`;
  return status === 'idle' ? '' : status;
}
