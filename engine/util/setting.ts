/** What a row of a table of settings says; the types of the values come from the rows, and so do flags, environment, files and documents. */

interface Described {
  /** Heading it stands under; a setting without one is not offered to operators. */
  readonly group?: string;
  /** Another name that is taken for it. */
  readonly aka?: string;
  /** What it does, for whoever sets it. `{name}` is another setting, which the reader's interface spells as it spells that one. */
  readonly help: string;
  /** What the value is, in a word. */
  readonly value?: string;
}

interface Counted extends Described {
  readonly default?: number | string | readonly number[];
  /** Words it may be instead of a number. */
  readonly words?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  /** How many of the code's units (bytes) one of the operator's (GiB) is, where they differ. */
  readonly scale?: number;
}

/** A row: without a default, the setting may be absent. */
export type Setting =
  | (Described & { readonly type: 'boolean'; readonly default: boolean })
  | (Counted & { readonly type: 'int' | 'number' | 'ints' })
  | (Described & { readonly type: 'string'; readonly default?: string; readonly choices?: readonly string[] })
  | (Described & { readonly type: 'list'; readonly default: readonly string[] });

type WordOf<S> = S extends { readonly words: readonly (infer W)[] } ? W : never;
/** What a row's setting may be. */
export type ValueOf<S> = S extends { readonly type: 'boolean' }
  ? boolean
  : S extends { readonly type: 'int' | 'number' }
    ? number | WordOf<S>
    : S extends { readonly type: 'ints' }
      ? readonly number[] | WordOf<S>
      : S extends { readonly type: 'list' }
        ? readonly string[]
        : S extends { readonly choices: readonly (infer C)[] }
          ? C
          : string;

type Always<T> = { [K in keyof T]: T[K] extends { readonly default: unknown } ? K : never }[keyof T];
/** The settings of a table, each with its type; those without a default may be absent. */
export type SettingsOf<T> = { readonly [K in Always<T>]: ValueOf<T[K]> } & { readonly [K in Exclude<keyof T, Always<T>>]?: ValueOf<T[K]> };

type KeyOf<S> = S extends unknown ? keyof S : never;
/** Rows of known parts whose default is one of the values; others have no type. */
type Sound<T> = {
  readonly [K in keyof T]: [Exclude<keyof T[K], KeyOf<Setting>>, T[K] extends { readonly default: infer D } ? D : never] extends [
    never,
    ValueOf<T[K]>,
  ]
    ? T[K]
    : never;
};

/** A table of settings as it is, checked: every default is a value that its row allows. */
export const defineSettings = <const T extends Readonly<Record<string, Setting>>>(rows: T & Sound<T>): T => rows;

/** The settings that nobody has set. */
export function defaultsOf<T extends Readonly<Record<string, Setting>>>(rows: T): SettingsOf<T> {
  const given = Object.entries(rows).flatMap(([name, row]) => (row.default === undefined ? [] : [[name, row.default]]));
  return Object.fromEntries(given) as SettingsOf<T>;
}
