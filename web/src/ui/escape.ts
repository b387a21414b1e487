import { useEffect, useRef } from 'preact/hooks';
import { isComposing } from './composing.ts';

/**
 * Esc, wherever the focus is: `stop` says whether there was anything to stop. The key is left to an open dialog and to whoever has used it
 * already: views listen at the document, so what listens at the window comes after them.
 */
export function useEscape(stop: () => boolean, at: Document | Window = document): void {
  const latest = useRef(stop);
  latest.current = stop;
  useEffect(() => {
    const onKey = (event: Event): void => {
      const { key, defaultPrevented } = event as KeyboardEvent;
      if (key !== 'Escape' || isComposing(event as KeyboardEvent) || defaultPrevented || document.querySelector('dialog[open]')) return;
      if (latest.current()) event.preventDefault();
    };
    at.addEventListener('keydown', onKey);
    return () => at.removeEventListener('keydown', onKey);
  }, [at]);
}
