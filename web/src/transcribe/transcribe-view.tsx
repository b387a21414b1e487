/** The transcribe view: drop a file, choose one, or record; the transcript appears under the waveform and may be corrected. */
import { useApp } from '../app.ts';
import { EngineNotice } from '../engine-notice.tsx';
import { ModelPlace } from '../model-place.tsx';
import { namedLanguages } from '../models/about-words.ts';
import { StoreProblem } from '../storage/store-problem.tsx';
import { TextField } from '../ui/fields.tsx';
import { formatTime, sentence } from '../util.ts';
import { WhereSwitch } from '../where-switch.tsx';
import { Intake } from './intake.tsx';
import { ReadingLine } from './reading.tsx';
import { Result } from './result.tsx';
import type { TranscriptStatus } from './transcript.ts';

export function TranscribeView() {
  const { transcription, work } = useApp();
  const { player, problem, reading } = transcription;
  const transcript = transcription.current.value;
  return (
    <div class="page">
      <header>
        <h1>Transcribe</h1>
        <ModelPlace task="transcription" id="transcribe-place" />
        <p>Speech from a file or the microphone becomes text with times.</p>
      </header>
      <div class="stack">
        <Intake
          onFiles={(files) => void transcription.open(files)}
          onRecorded={(samples) => void transcription.hear('recording', samples)}
        />
        {reading.value && <ReadingLine reading={reading.value} />}
        <Waiting />
        {problem.value && (
          <p class="failure" role="alert">
            {sentence(problem.value)}
          </p>
        )}
        <EngineNotice task="transcription" onRestarted={() => void (transcript && transcription.run(transcript))} />
        <StoreProblem of={[work, transcription.transcripts]} />
        {transcript && <Result key={transcript.id} transcript={transcript} player={player} />}
        <Earlier />
      </div>
      <aside class="panel" aria-label="Settings">
        <TranscribeSettings />
      </aside>
    </div>
  );
}

/** Files that wait to be transcribed, with a button to drop them. */
function Waiting() {
  const { waiting } = useApp().transcription;
  const names = waiting.value.map(({ name }) => name);
  if (names.length === 0) return null;
  return (
    <div class="row spread">
      <span class="label">then {names.join(', ')}</span>
      <button class="plain" onClick={() => (waiting.value = [])}>
        Leave {names.length === 1 ? 'it' : 'them'} out
      </button>
    </div>
  );
}

/** Words for recordings in the list that are not done. */
const OTHERS: Partial<Record<TranscriptStatus, string>> = { hearing: 'transcribing · ', stopped: 'stopped · ', failed: 'failed · ' };

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
              {OTHERS[transcript.status.value]}
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
          `curl ${base}/audio/transcriptions -F file=@recording.wav -F model=${app.choices.name('transcription') ?? 'whisper-1'} -F response_format=verbose_json`
        }
      />
      <hr />
      <LanguageField />
      <label class="field">
        <span class="label">Names and words to expect</span>
        <textarea
          dir="auto"
          rows={3}
          value={transcription.prompt}
          onInput={(event) => app.settings.update('transcription', { prompt: event.currentTarget.value })}
        />
      </label>
    </>
  );
}

/** The choice of the model's languages; a field for a code where they are not known. */
function LanguageField() {
  const { choices } = useApp();
  const known = choices.about('transcription')?.languages;
  if (!known) {
    return (
      <TextField
        label="Language"
        value={choices.language}
        placeholder="detected, or a code such as en"
        onChange={(language) => choices.setLanguage(language.trim())}
      />
    );
  }
  const [only] = known.length === 1 ? known : [];
  return (
    <label class="field">
      <span class="label">Language</span>
      <select
        value={only ?? choices.language}
        disabled={only !== undefined}
        onChange={(event) => choices.setLanguage(event.currentTarget.value)}
      >
        {only === undefined && <option value="">detected by the model</option>}
        {namedLanguages(known).map(([code, name]) => (
          <option key={code} value={code}>
            {only === undefined ? name : `${name}, the model's only one`}
          </option>
        ))}
      </select>
    </label>
  );
}
