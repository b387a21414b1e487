/** How deep and how long a JSON body may be, so that nothing that walks over it overflows the stack or blocks the event loop. */
import { HttpError } from '../http/errors.ts';

export const MAX_DEPTH = 64;
/** Most commas outside strings. */
export const MAX_ELEMENTS = 200_000;

/** 400 for a body with more than MAX_DEPTH levels. */
export const tooDeep = (): HttpError => new HttpError(400, 'invalid_json', `the body is nested deeper than ${MAX_DEPTH} levels`);

/** 400 for a body with more than MAX_ELEMENTS elements. */
export const tooManyElements = (): HttpError => new HttpError(400, 'invalid_json', `the body has more than ${MAX_ELEMENTS} elements`);
