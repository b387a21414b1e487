/** Schemas of the settings that /server_info shows, from the table of flags. */
import { z } from 'zod';
import { SHOWN_FLAGS } from './flags.ts';
import type { Flag } from './flags.ts';

const VALUES: Readonly<Record<Flag['type'], z.ZodType>> = {
  boolean: z.boolean(),
  string: z.string(),
  int: z.number(),
  number: z.number(),
  ints: z.array(z.number()),
  list: z.array(z.string()),
};

/** A setting's value. */
function valueOf(flag: Flag): z.ZodType {
  const choices = 'choices' in flag ? flag.choices : undefined;
  const plain = choices ? z.enum(choices) : VALUES[flag.type];
  const words = 'words' in flag && flag.words ? z.union([plain, z.enum(flag.words)]) : plain;
  return words.optional().describe(flag.help);
}

/** By the names of their flags. */
export const SHOWN_SETTINGS: z.ZodRawShape = Object.fromEntries(SHOWN_FLAGS.map((flag) => [flag.name, valueOf(flag)]));
