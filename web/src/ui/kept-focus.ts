import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

/** Whether the primary pointer is a finger: focusing a field then brings up a keyboard over half of the page. */
export const isUnderFinger = (): boolean => matchMedia('(pointer: coarse)').matches;

/**
 * Keeps the focus when a focused control disappears (a picked suggestion, "Try again"), which would otherwise send keyboard users to the
 * top of the page. It moves to the element that the view marks with `data-focus-home`, or to `frame` itself; on touch screens always to
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
