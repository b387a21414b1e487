/** Keys that belong to a text, and not to the page. */

/** The code of a key that an input method has used, whatever key it is. */
const USED = 229;

/** Whether a key belongs to what composes letters (Japanese, Chinese). Safari says of the Enter that ends it only that it was used: the composing is over by then. */
export const isComposing = ({ isComposing: composes, keyCode }: KeyboardEvent): boolean => composes || keyCode === USED;

/** Whether keys go into a field that has the focus. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
