/** Drop a file, choose one, or record; what is heard appears under the waveform and may be corrected. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useApp } from '../app.ts';
import { decodeAudio } from '../audio/decode.ts';
import { CAPTURE_RATE } from '../audio/microphone.ts';
import { Player } from '../audio/player.ts';
import { EngineNotice } from '../engine-notice.tsx';
import { useEscape } from '../ui/escape.ts';
import { TextField } from '../ui/fields.tsx';
import { WhereSwitch } from '../where-switch.tsx';
import { Intake } from './intake.tsx';
import { Result } from './result.tsx';
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
  useEscape(() => {
    const playing = player.playing.peek();
    player.pause();
    return playing;
  });
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
