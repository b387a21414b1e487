/** The speak view: text on the left, voices on the right; each take is kept, with its seed, until it is deleted. */
import type { Signal } from '@preact/signals';
import { Fragment } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { useApp } from '../app.ts';
import { EngineNotice, useIsReady } from '../engine-notice.tsx';
import { ModelPlace } from '../model-place.tsx';
import { StoreProblem } from '../storage/store-problem.tsx';
import { directBeforePaste, directionOf } from '../ui/direction.ts';
import { useEscape } from '../ui/escape.ts';
import { NumberField, TextField } from '../ui/fields.tsx';
import { formatCount, quoted } from '../util.ts';
import { WhereSwitch } from '../where-switch.tsx';
import { TakeItem } from './take-item.tsx';
import { INTERFACE_VOICES, byLanguage } from './voices.ts';

const LONGEST = 4096; // characters; the interface's limit

export function SpeakView() {
  const { speech, work } = useApp();
  const { player, text } = speech;
  const making = speech.isMaking.value;
  useEscape(() => speech.stop());
  return (
    <div class="page">
      <header>
        <h1>Speak</h1>
        <ModelPlace task="speech" id="speak-place" />
        <p>A text is read aloud. The same text, voice, speed and seed give the same sound, sample for sample.</p>
      </header>
      <div class="stack">
        <SpeakForm text={text} making={making} onMake={() => speech.make()} onStop={() => speech.stop()} />
        <EngineNotice task="speech" />
        <StoreProblem of={[work, speech.takes]} />
        <ol class="takes">
          {speech.takes.items.value.map((take) => (
            <TakeItem
              key={take.id}
              take={take}
              player={player}
              isCurrent={take.id === speech.currentId.value}
              onPlay={(seconds) => void speech.play(take, seconds)}
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

interface FormProps {
  readonly text: Signal<string>;
  readonly making: boolean;
  readonly onMake: () => void;
  readonly onStop: () => void;
}

function SpeakForm({ text, making, onMake, onStop }: FormProps) {
  const isTooLong = text.value.length > LONGEST;
  const isReady = useIsReady('speech');
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (making) onStop();
        else onMake();
      }}
    >
      <label class="field">
        <span class="label">
          <span>Text</span>
          <span class={isTooLong ? 'note wrong' : ''}>
            {formatCount(text.value.length)} of {formatCount(LONGEST)} characters{isTooLong && ': too long'}
          </span>
        </span>
        <textarea
          dir={directionOf(text.value)}
          rows={6}
          aria-label="Text"
          aria-invalid={isTooLong}
          value={text}
          onPaste={directBeforePaste}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
      </label>
      <div class="row">
        <button class={making ? 'running' : isReady ? 'primary' : ''} disabled={!making && (isTooLong || text.value.trim() === '')}>
          {making ? 'Stop' : 'Speak'}
        </button>
      </div>
    </form>
  );
}

function SpeakSettings({ text }: { text: string }) {
  const app = useApp();
  const { speech } = app.settings.data.value;
  const { voice } = app.choices;
  return (
    <>
      <VoiceChoice />
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
          `curl ${base}/audio/speech -H 'content-type: application/json' -o speech.wav -d ${quoted(
            JSON.stringify({
              model: app.choices.name('speech') ?? 'tts-1',
              input: text,
              voice,
              speed: speech.speed,
              response_format: 'wav',
            }),
          )}`
        }
      />
    </>
  );
}

/** The choice of the model's voices; for a server that has not been asked yet, the voices that every Parley server has. */
function VoiceChoice() {
  const app = useApp();
  const isServer = app.settings.where.value.speech === 'server';
  const voices = app.choices.about('speech')?.voices ?? (isServer ? INTERFACE_VOICES : undefined);
  const chosen = app.choices.voice;
  const list = useRef<HTMLDivElement>(null);
  // Scrolled into view, because the chosen voice may be one of dozens.
  useLayoutEffect(() => {
    const label = list.current?.querySelector<HTMLElement>('label:has(:checked)');
    if (list.current && label) list.current.scrollTop = label.offsetTop - list.current.offsetTop - list.current.clientHeight / 2;
  }, [voices?.join()]);
  return (
    <fieldset>
      <legend class="label">{voices ? `Voice: ${chosen}, one of ${voices.length}` : 'Voice'}</legend>
      {!voices && <p class="label">Its voices are known once the model is loaded.</p>}
      <div class="voices" ref={list}>
        {byLanguage(voices ?? []).map(([language, names]) => (
          <Fragment key={language}>
            {language !== undefined && <h3 class="label">{language}</h3>}
            {names.map((voice) => (
              <label key={voice}>
                <input type="radio" name="voice" value={voice} checked={chosen === voice} onChange={() => app.choices.setVoice(voice)} />
                {voice}
              </label>
            ))}
          </Fragment>
        ))}
      </div>
    </fieldset>
  );
}
