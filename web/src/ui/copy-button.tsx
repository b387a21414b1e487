import { useSignal } from '@preact/signals';
import { copyText } from '../util.ts';

/** A copy button that says afterwards whether it worked. `text` is called at the click. */
export function CopyButton({ text, label = 'Copy', plain = true }: { text: () => string; label?: string; plain?: boolean }) {
  const done = useSignal<boolean | undefined>(undefined);
  return (
    <button type="button" class={plain ? 'plain' : undefined} onClick={() => void copyText(text()).then((copied) => (done.value = copied))}>
      {done.value === undefined ? label : done.value ? 'Copied' : 'Not allowed here'}
    </button>
  );
}
