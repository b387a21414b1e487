import { useEffect } from 'preact/hooks';

/**
 * Esc, wherever the focus is: `stop` says whether there was anything to stop. The key is left to an open dialog and to whoever has used it
 * already.
 */
export function useEscape(stop: () => boolean): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]')) return;
      if (stop()) event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });
}
