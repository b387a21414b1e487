/** System prompt of the conversation, sampling, and where the chat is computed. */
import { CONTROL_NAMES, SAMPLING } from '../../../engine/sampling.ts';
import { useApp } from '../app.ts';
import type { SettingsData } from '../settings.ts';
import { NumberField, TextField } from '../ui/fields.tsx';
import { WhereSwitch } from '../where-switch.tsx';
import type { Conversation } from './conversation.ts';
import { samplingOf } from './sampling.ts';

export function ChatSettings({ conversation }: { conversation: Conversation }) {
  const app = useApp();
  const { chat } = app.settings.data.value;
  const set = (patch: Partial<SettingsData['chat']>): void => app.settings.update('chat', patch);
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
          onChange={(event) => void conversation.setSystem(event.currentTarget.value)}
        />
      </label>
      {CONTROL_NAMES.map((name) => {
        const { label, max, step } = SAMPLING[name].control;
        return (
          <NumberField
            key={name}
            label={label}
            value={chat[name]}
            min={0}
            max={max}
            step={step}
            onChange={(value) => set({ [name]: value })}
          />
        );
      })}
      <NumberField
        label="Longest answer, tokens"
        value={chat.maxTokens}
        min={16}
        max={2048}
        step={16}
        onChange={(maxTokens) => set({ maxTokens })}
      />
      <TextField label="Seed" value={chat.seed} placeholder="random" onChange={(seed) => set({ seed })} />
      <label class="field">
        <span class="label">Stop at, one per line</span>
        <textarea class="code" rows={2} value={chat.stop} onChange={(event) => set({ stop: event.currentTarget.value })} />
      </label>
      <MoreSettings />
    </div>
  );
}

const MICROPHONE = [
  ['echoCancellation', 'Cancel echo'],
  ['noiseSuppression', 'Suppress noise'],
  ['autoGainControl', 'Level the volume'],
] as const;

/** What few people change. */
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

/** How much of the context the conversation takes, as of the last answer. */
function ContextFill({ conversation }: { conversation: Conversation }) {
  const app = useApp();
  const limit = app.choices.about('chat')?.contextLength;
  const stats = conversation.messages.value.at(-1)?.stats.value;
  if (limit === undefined || !stats) return null;
  const used = stats.promptTokens + stats.completionTokens;
  return (
    <div class="field">
      <span class="label">
        <span>Context</span>
        <span>
          {used} of {limit}
        </span>
      </span>
      <progress class="still" value={used} max={limit} aria-label="Context used" />
    </div>
  );
}

function chatCurl(base: string, model: string, conversation: Conversation, chat: SettingsData['chat']): string {
  const question =
    conversation.messages
      .peek()
      .findLast((message) => message.role === 'user')
      ?.text.peek() ?? 'Hello!';
  const { sampling, maxTokens } = samplingOf(chat);
  const body = {
    model,
    messages: [{ role: 'user', content: question }],
    temperature: sampling.temperature,
    top_p: sampling.topP,
    max_completion_tokens: maxTokens,
    stream: true,
  };
  return `curl -N ${base}/chat/completions -H 'content-type: application/json' -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`;
}
