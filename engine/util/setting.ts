/** Tables of settings. Each setting is one row, from which its type, flag, environment variable, file key and documentation derive. */

interface Described {
  /** Heading in the help; a setting without one is not offered to operators. */
  readonly group?: string;
  /** Another name by which it may be set. */
  readonly aka?: string;
  /** What it does, for the operator. `{name}` refers to another setting, spelt as in the reader's interface (flag, variable or key). */
  readonly help: string;
  /** Placeholder of the value in the help, in one word. */
  readonly value?: string;
}

interface Counted extends Described {
  readonly default?: number | string | readonly number[];
  /** Words that are allowed instead of a number, such as `auto`. */
  readonly words?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  /** Factor from the operator's unit (GiB) to the code's (bytes), if they differ. */
  readonly scale?: number;
}

/** A row of a table of settings. A setting without a default may be absent. */
export type Setting =
  | (Described & { readonly type: 'boolean'; readonly default: boolean })
  | (Counted & { readonly type: 'int' | 'number' | 'ints' })
  | (Described & { readonly type: 'string'; readonly default?: string; readonly choices?: readonly string[] })
  | (Described & {
      readonly type: 'list';
      readonly default: readonly string[];
      /** What the default is, where it is too long to be shown. */
      readonly defaultIs?: string;
      /** Given several times on the command line, it has the items of all; otherwise those of the last. */
      readonly repeats?: boolean;
    });

type WordOf<S> = S extends { readonly words: readonly (infer W)[] } ? W : never;
/** The type of a setting's value. */
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
/** The type of all settings of a table; those without a default are optional. */
export type SettingsOf<T> = { readonly [K in Always<T>]: ValueOf<T[K]> } & { readonly [K in Exclude<keyof T, Always<T>>]?: ValueOf<T[K]> };

type KeyOf<S> = S extends unknown ? keyof S : never;
/** Rejects, as `never`, rows with unknown fields or a default that is not an allowed value. */
type Sound<T> = {
  readonly [K in keyof T]: [Exclude<keyof T[K], KeyOf<Setting>>, T[K] extends { readonly default: infer D } ? D : never] extends [
    never,
    ValueOf<T[K]>,
  ]
    ? T[K]
    : never;
};

/** Defines a table of settings; the compiler checks that every default is allowed by its row. */
export const defineSettings = <const T extends Readonly<Record<string, Setting>>>(rows: T & Sound<T>): T => rows;

/** The default values of a table. */
export function defaultsOf<T extends Readonly<Record<string, Setting>>>(rows: T): SettingsOf<T> {
  const given = Object.entries(rows).flatMap(([name, row]) => (row.default === undefined ? [] : [[name, row.default]]));
  return Object.fromEntries(given) as SettingsOf<T>;
}
