/** What is typed into a field that counts once it is left. */
import { useSignal } from '@preact/signals';
import type { TargetedEvent } from 'preact';

/**
 * Attributes of an input whose text goes to `onChange` once the field is left. Until then what is typed is kept: any rendering would put
 * `value` back into the field.
 */
export function useDraft(value: string, onChange: (text: string) => void) {
  const draft = useSignal<string | undefined>(undefined);
  return {
    value: draft.value ?? value,
    onInput: (event: TargetedEvent<HTMLInputElement>): void => void (draft.value = event.currentTarget.value),
    onChange: (event: TargetedEvent<HTMLInputElement>): void => onChange(event.currentTarget.value),
    onBlur: (): void => void (draft.value = undefined),
  };
}
