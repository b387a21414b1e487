/** Labelled inputs of the settings panels. */
import { formatStep } from '../util.ts';
import { useDraft } from './draft.ts';

interface NumberProps {
  readonly label: string;
  readonly value: number;
  readonly min: number;
  readonly max: number;
  readonly step: number;
  readonly onChange: (value: number) => void;
}

/** A slider that shows its number; the arrow keys change it. */
export function NumberField({ label, value, min, max, step, onChange }: NumberProps) {
  return (
    <label class="field">
      <span class="label">
        <span>{label}</span>
        <span>{formatStep(value, step)}</span>
      </span>
      <input
        type="range"
        aria-label={label}
        value={value}
        min={min}
        max={max}
        step={step}
        onInput={(event) => onChange(Number(event.currentTarget.value))}
      />
    </label>
  );
}

interface TextProps {
  readonly label: string;
  readonly value: string;
  readonly placeholder?: string;
  readonly onChange: (value: string) => void;
}

/** A line of text that counts once the field is left. */
export function TextField({ label, value, placeholder, onChange }: TextProps) {
  return (
    <label class="field">
      <span class="label">{label}</span>
      <input type="text" dir="auto" placeholder={placeholder ?? ''} {...useDraft(value, onChange)} />
    </label>
  );
}
