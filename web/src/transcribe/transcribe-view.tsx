/** Drop a file, choose one, or record; what is heard appears under the waveform and may be corrected. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useApp } from '../app.ts';
import { CAPTURE_RATE } from '../audio/microphone.ts';
import { Player } from '../audio/player.ts';
import { EngineNotice } from '../engine-notice.tsx';
import { useEscape } from '../ui/escape.ts';
import { TextField } from '../ui/fields.tsx';
import { WhereSwitch } from '../where-switch.tsx';
import { Intake } from './intake.tsx';
import { ReadingLine, useReading } from './reading.tsx';
import { Result } from './result.tsx';
import { Transcript } from './transcript.ts';

export function TranscribeView() {
  const app = useApp();
  const transcript = useSignal<Transcript | undefined>(undefined);
  const player = useRef(new Player()).current;
  useEffect(
    () => () => {
      transcript.peek()?.stop();
      player.clear();
    },
    [],
  );
  useEscape(() => {
    const playing = player.playing.peek();
    player.pause();
    return playing;
  });
  const hear = (name: string, samples: Float32Array, levels?: Float32Array): void => {
    problem.value = samples.length === 0 ? 'There is no sound in it.' : '';
    if (samples.length === 0) return;
    transcript.peek()?.stop();
    player.load(samples, CAPTURE_RATE);
    transcript.value = new Transcript(name, samples, levels);
    void transcript.value.run(app);
  };
  const { reading, problem, open } = useReading(hear);
  return (
    <div class="page">
      <header>
        <h1>Transcribe</h1>
        <p>Speech from a file or the microphone becomes text with times. English, with the model that comes along.</p>
      </header>
      <div class="stack">
        <Intake onFile={open} onRecorded={(samples) => hear('recording', samples)} />
        {reading.value && <ReadingLine reading={reading.value} />}
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
        curl={(base) =>
          `curl ${base}/audio/transcriptions -F file=@recording.wav -F model=parley-transcribe -F response_format=verbose_json`
        }
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
