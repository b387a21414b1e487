/** Drop a file, choose one, or record; what is heard appears under the waveform and may be corrected. */
import { useApp } from '../app.ts';
import { EngineNotice } from '../engine-notice.tsx';
import { TextField } from '../ui/fields.tsx';
import { formatTime } from '../util.ts';
import { WhereSwitch } from '../where-switch.tsx';
import { Intake } from './intake.tsx';
import { ReadingLine } from './reading.tsx';
import { Result } from './result.tsx';

export function TranscribeView() {
  const { transcription, work } = useApp();
  const { player, problem, reading } = transcription;
  const transcript = transcription.current.value;
  return (
    <div class="page">
      <header>
        <h1>Transcribe</h1>
        <p>Speech from a file or the microphone becomes text with times. English, with the model that comes along.</p>
      </header>
      <div class="stack">
        <Intake
          onFile={(file) => void (file && transcription.open(file))}
          onRecorded={(samples) => void transcription.hear('recording', samples)}
        />
        {reading.value && <ReadingLine reading={reading.value} />}
        {problem.value && (
          <p class="failure" role="alert">
            {problem}
          </p>
        )}
        <EngineNotice task="transcription" onRestarted={() => void (transcript && transcription.run(transcript))} />
        {work.problem.value && (
          <p class="label" role="alert">
            {work.problem}
          </p>
        )}
        {transcript && <Result key={transcript.id} transcript={transcript} player={player} />}
        <Earlier />
      </div>
      <aside class="panel" aria-label="Settings">
        <TranscribeSettings />
      </aside>
    </div>
  );
}

/** The other recordings, newest first. */
function Earlier() {
  const { transcription } = useApp();
  const others = transcription.transcripts.items.value.filter((transcript) => transcript !== transcription.current.value);
  if (others.length === 0) return null;
  return (
    <section aria-labelledby="earlier">
      <h2 id="earlier" class="label">
        Other recordings
      </h2>
      <ol class="recordings">
        {others.map((transcript) => (
          <li key={transcript.id} class="row spread">
            <button class="plain" onClick={() => transcription.choose(transcript)}>
              {transcript.name}
            </button>
            <span class="label">
              {formatTime(transcript.duration.value)} · {new Date(transcript.created).toLocaleString()}
            </span>
          </li>
        ))}
      </ol>
    </section>
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
