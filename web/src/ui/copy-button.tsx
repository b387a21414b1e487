import { useSignal } from '@preact/signals';
import { copyText } from '../util.ts';

/** Says afterwards whether it could. */
export function CopyButton({ text, label = 'Copy' }: { text: () => string; label?: string }) {
  const done = useSignal<boolean | undefined>(undefined);
  return (
    <button type="button" class="plain" onClick={() => void copyText(text()).then((copied) => (done.value = copied))}>
      {done.value === undefined ? label : done.value ? 'Copied' : 'Not allowed here'}
    </button>
  );
}
