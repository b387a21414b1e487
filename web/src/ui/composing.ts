/** Tells keys that belong to a text field from the page's shortcuts. */

/** keyCode of any key that an input method has consumed. */
const USED = 229;

/**
 * Whether an input method (Japanese, Chinese) uses a key. For the Enter that ends composition Safari sets only the keyCode: isComposing is
 * false by then.
 */
export const isComposing = ({ isComposing: composes, keyCode }: KeyboardEvent): boolean => composes || keyCode === USED;

/** Whether keys go into a focused text field. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
