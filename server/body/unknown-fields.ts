/** Tells whoever debugs a client of fields that no route knows: they are ignored, so that a misspelt one changes nothing and is refused by nobody. */
import type { Json, Route } from '../http/route.ts';
import type { Logger } from '../log.ts';

/** Most names in a line, and most characters of one. */
const [MAX_NAMES, MAX_NAME] = [10, 40];
/** Most lines of a listener, since clients choose the names. */
const MAX_LINES = 100;

/** Lists the unknown fields of requests in the log, at level debug, once for each set of names. */
export class UnknownFields {
  readonly #log: Logger;
  readonly #known = new Map<Route, ReadonlySet<string>>();
  readonly #told = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Takes the names of a body's top-level fields. */
  note(route: Route, names: Iterable<string>): void {
    if (!this.#log.isLevelEnabled('debug') || this.#told.size >= MAX_LINES) return;
    const known = this.#known.get(route) ?? new Set(Object.values(route.body?.() ?? {}).flatMap(fieldsOf));
    this.#known.set(route, known);
    const unknown = [...names].filter((name) => !known.has(name));
    if (unknown.length === 0) return;
    const fields = unknown
      .slice(0, MAX_NAMES)
      .map((name) => name.slice(0, MAX_NAME))
      .sort();
    const told = JSON.stringify([route.path, fields]);
    if (this.#told.has(told)) return;
    this.#told.add(told);
    const more = unknown.length - fields.length;
    this.#log.debug({ route: route.path, fields, ...(more > 0 && { more }) }, 'unknown fields of a request are ignored');
  }
}

/** Names of the fields that a body's JSON Schema has, in any of its forms; those of a form's lists without their brackets. */
function fieldsOf({ properties = {}, oneOf = [] }: Json): string[] {
  const own = Object.keys(properties as Json).map((name) => name.replace(/\[\]$/, ''));
  return [...own, ...(oneOf as readonly Json[]).flatMap(fieldsOf)];
}
