/** Replaces typographic variants by the few punctuation marks that are read. */

/** Drops invisible characters, and brings quotation marks, full-width punctuation, dashes and dots into their plain forms. */
export function plainPunctuation(text: string): string {
  return withoutInvisible(
    // espeak-ng names emoji one by one, and loses those with a variation selector.
    text
      .replace(/\r\n?/g, '\n')
      .replace(/(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}]\ufe0f?)\u200d(?=\p{Extended_Pictographic})/gu, ' '),
  )
    .replace(/[‘’ʼ`´]/g, "'")
    .replace(/[«»„‟″]/g, '"')
    .replace(/[、，]/g, ', ')
    .replace(/。/g, '. ')
    .replace(/！/g, '! ')
    .replace(/？/g, '? ')
    .replace(/：/g, ': ')
    .replace(/；/g, '; ')
    .replace(/¿|¡/g, '')
    .replace(/\.{2,}/g, '…')
    .replace(/(?<!\s)\s+(?:[–—]+|-{1,2})\s+|—|--/g, ' — ')
    .replace(/[{}[\]]/g, ' ')
    .replace(/[*_#>|~^\\]{2,}/g, ' ');
}

/** Drops characters that nobody sees: control characters become spaces, joiners, marks of byte order and selectors of variants nothing. */
export function withoutInvisible(text: string): string {
  return text.replace(/\ufe0f/g, '').replace(/[\u200b-\u200d\u2060\ufeff\u00ad]/g, '').replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, ' '); // prettier-ignore
}
