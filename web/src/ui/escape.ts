import { useEffect, useRef } from 'preact/hooks';
import { isComposing } from './composing.ts';

/**
 * Calls `stop` on Escape, wherever the focus is; `stop` returns whether there was anything to stop. An open dialog, and handlers that have
 * used the key already, take precedence: views listen on the document, so listeners on the window come after them.
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
