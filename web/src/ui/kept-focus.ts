import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

/** True where a field that is given the focus brings up a keyboard over half of the page. */
export const isUnderFinger = (): boolean => matchMedia('(pointer: coarse)').matches;

/**
 * A control that goes away with the focus on it (a suggestion that was picked, "Try again") would leave the keyboard at the top of the page.
 * Then the focus goes to the element that the view marks with `data-focus-home`, or to `frame` itself. Under a finger it always goes to
 * `frame`.
 */
export function useKeptFocus(frame: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const element = frame.current!;
    let held: Element | null = null;
    const note = (event: FocusEvent): void => void (held = event.target as Element);
    const keep = (): void => {
      if (!held || held.isConnected || document.activeElement !== document.body) return;
      held = null;
      const home = isUnderFinger() ? null : element.querySelector<HTMLElement>('[data-focus-home]');
      (home ?? element).focus({ preventScroll: true });
    };
    const observer = new MutationObserver(keep);
    observer.observe(element, { childList: true, subtree: true });
    document.addEventListener('focusin', note);
    return () => {
      observer.disconnect();
      document.removeEventListener('focusin', note);
    };
  }, []);
}
