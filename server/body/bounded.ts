/**
 * Schemas of long arrays and objects. zod checks every element and collects all issues: for the 200,000 elements that a body may have, that blocks the event loop
 * for seconds, or overflows the stack. These schemas stop at the first issue, which is all that a client is told.
 */
import { z } from 'zod';
import type { Json } from '../http/route.ts';

/** A schema for /openapi.json. */
function described(schema: z.ZodType): Json {
  const { $schema: _, ...made } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return made;
}

/** Elements that are validated at a time; one by one they take ten times as long. */
const TOGETHER = 256;

/** Schema of an array that stops at the first issue; `sized` may add limits of its length. */
export function list<T extends z.ZodType>(element: T, sized = (all: z.ZodArray<z.ZodUnknown>) => all) {
  const several = z.array(element);
  const each = (all: readonly unknown[], context: z.RefinementCtx): z.output<T>[] => {
    const elements: z.output<T>[] = [];
    for (let from = 0; from < all.length; from += TOGETHER) {
      const { success, data, error } = several.safeParse(all.slice(from, from + TOGETHER), { reportInput: true });
      if (success) elements.push(...data);
      else {
        const first = error.issues[0]!;
        const [at, ...rest] = first.path;
        context.issues.push({ ...first, path: [from + (at as number), ...rest] } as z.core.$ZodRawIssue);
        break;
      }
    }
    return elements;
  };
  return sized(z.array(z.unknown()))
    .transform(each)
    .meta({ items: described(element) });
}

/** Schema of an object whose entries are validated only if `sized` accepts their number; otherwise the issue is `message`. */
export function entries<T extends z.ZodType>(schema: T, sized: (given: object) => boolean, message: string) {
  const whole = (given: unknown, context: z.RefinementCtx): z.output<T> => {
    if (typeof given === 'object' && given !== null && !sized(given)) {
      context.issues.push({ code: 'custom', message, input: given });
      return z.NEVER;
    }
    const { success, data, error } = schema.safeParse(given, { reportInput: true });
    if (success) return data;
    context.issues.push(error.issues[0] as z.core.$ZodRawIssue);
    return z.NEVER;
  };
  return z.unknown().transform(whole).meta(described(schema));
}
