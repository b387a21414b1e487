/** Settings beside the chat: the conversation's system prompt, sampling, and where the chat is computed. */
import { SAMPLING } from '../../../engine/sampling.ts';
import type { ControlName } from '../../../engine/sampling.ts';
import { useApp } from '../app.ts';
import { chatBody } from '../backend/remote-engine.ts';
import type { SettingsData } from '../settings.ts';
import { NumberField, TextField } from '../ui/fields.tsx';
import { formatCount, quoted } from '../util.ts';
import { WhereSwitch } from '../where-switch.tsx';
import type { Conversation } from './conversation.ts';
import { promptOf } from './prompt.ts';
import { RARE_CONTROLS, changedSampling, samplingOf } from './sampling.ts';

export function ChatSettings({ conversation }: { conversation: Conversation }) {
  const app = useApp();
  const { chat } = app.settings.data.value;
  return (
    <div class="panel">
      <ContextFill conversation={conversation} />
      <WhereSwitch task="chat" curl={(base) => chatCurl(base, app.choices.name('chat') ?? 'default', conversation, chat)} />
      <hr />
      <label class="field">
        <span class="label">System prompt</span>
        <textarea
          dir="auto"
          rows={3}
          value={conversation.system.value}
          onInput={(event) => void conversation.setSystem(event.currentTarget.value)}
        />
      </label>
      <SamplingControl name="temperature" />
      <NumberField
        label="Longest answer, tokens"
        value={chat.maxTokens}
        min={16}
        max={2048}
        step={16}
        onChange={(maxTokens) => app.settings.update('chat', { maxTokens })}
      />
      <MoreSampling />
      <MoreSettings />
    </div>
  );
}

function SamplingControl({ name }: { name: ControlName }) {
  const { settings } = useApp();
  const { label, max, step } = SAMPLING[name].control;
  return (
    <NumberField
      label={label}
      value={settings.value.chat[name]}
      min={0}
      max={max}
      step={step}
      onChange={(value) => settings.update('chat', { [name]: value })}
    />
  );
}

/** The rarely used sampling controls; folded, they show which of them differ from the defaults. */
function MoreSampling() {
  const { settings } = useApp();
  const { chat, moreSampling } = settings.value;
  const changed = changedSampling(chat);
  return (
    <details
      class="more"
      open={moreSampling}
      onToggle={(event) => event.currentTarget.open !== moreSampling && settings.set('moreSampling', event.currentTarget.open)}
    >
      <summary>More sampling{!moreSampling && changed.length > 0 && <span class="changed">: {changed.join(', ')}</span>}</summary>
      <div class="panel">
        {RARE_CONTROLS.map((name) => (
          <SamplingControl key={name} name={name} />
        ))}
        <TextField label="Seed" value={chat.seed} placeholder="random" onChange={(seed) => settings.update('chat', { seed })} />
        <label class="field">
          <span class="label">Stop at, one per line</span>
          <textarea
            class="code"
            rows={2}
            value={chat.stop}
            onInput={(event) => settings.update('chat', { stop: event.currentTarget.value })}
          />
        </label>
      </div>
    </details>
  );
}

const MICROPHONE = [
  ['echoCancellation', 'Cancel echo'],
  ['noiseSuppression', 'Suppress noise'],
  ['autoGainControl', 'Level the volume'],
] as const;

/** The rarely changed settings. */
function MoreSettings() {
  const app = useApp();
  const { microphone, readAnswers } = app.settings.data.value;
  return (
    <details>
      <summary>Microphone and screen reader</summary>
      <div class="checks">
        {MICROPHONE.map(([key, label]) => (
          <label key={key}>
            <input
              type="checkbox"
              checked={microphone[key]}
              onChange={(event) => app.settings.update('microphone', { [key]: event.currentTarget.checked })}
            />
            {label}
          </label>
        ))}
        <label>
          <input type="checkbox" checked={readAnswers} onChange={(event) => app.settings.set('readAnswers', event.currentTarget.checked)} />
          Have answers read by the screen reader
        </label>
      </div>
    </details>
  );
}

/**
 * Share of the context that the conversation takes, as of the last answer with a counted prompt, so that the number stays while the next
 * answer is written.
 */
function ContextFill({ conversation }: { conversation: Conversation }) {
  const app = useApp();
  const limit = app.choices.about('chat')?.contextLength;
  const counted = conversation.messages.value.findLast(({ stats }) => (stats.value?.promptTokens ?? 0) > 0);
  const stats = counted?.stats.value;
  if (limit === undefined || !stats) return null;
  const used = stats.promptTokens + stats.completionTokens;
  return (
    <div class="field">
      <span class="label">
        <span>Context</span>
        <span>
          {formatCount(used)} of {formatCount(limit)}
        </span>
      </span>
      <progress class="still" value={used} max={limit} aria-label="Context used" />
    </div>
  );
}

/** A curl command that asks the last question alone, with this page's settings. */
function chatCurl(base: string, model: string, { messages, system }: Conversation, chat: SettingsData['chat']): string {
  const text =
    messages
      .peek()
      .findLast(({ role }) => role === 'user')
      ?.text.peek() ?? 'Hello!';
  const body = chatBody(model, { messages: promptOf([{ role: 'user', text }], system.peek()), ...samplingOf(chat) });
  return `curl -N ${base}/chat/completions -H 'content-type: application/json' -d ${quoted(JSON.stringify(body))}`;
}
