/** How Italian reads what is not written in words. */

import type { Notation } from './notation.ts';
import { withoutRoman } from './roman.ts';

const PARTS = ['', '', 'mezzo', 'terzo', 'quarto', 'quinto', 'sesto', 'settimo', 'ottavo', 'nono', 'decimo'];

/** The notation of Italian. */
export const IT: Notation = {
  names:
    'punto|virgola|barra|chiocciola|punto interrogativo|uguale|e|due punti|trattino basso|trattino|più|meno|per|diviso|a|su|per cento|per mille|hashtag|numero|più o meno|radice di|al quadrato|al cubo|alla|minore di|maggiore di|maggiore o uguale a|minore o uguale a|diverso da|circa',
  point: 'punto',
  domains: 'it|ch|eu',
  months: 'gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre'.split(' '),
  note: 'Nota',
  done: 'fatto',
  titles: 'Sig.=signor|Sig.ra=signora|Sig.na=signorina|Dott.=dottor|Dott.ssa=dottoressa|Dr.=dottor|Prof.=professor|Avv.=avvocato|Ing.=ingegner|On.=onorevole|S.=san',
  numbered: 'p.=pagina|pp.=pagine|pag.=pagina|pagg.=pagine|n.=numero|n°=numero|art.=articolo|cap.=capitolo|vol.=volume|fig.=figura|tel.=telefono|ca.=circa',
  short: 'ecc.=eccetera|etc.=eccetera|a.C.=avanti Cristo|a. C.=avanti Cristo|d.C.=dopo Cristo|d. C.=dopo Cristo|p.es.=per esempio|p. es.=per esempio|S.p.A.=società per azioni|SpA=società per azioni|S.r.l.=S R L|cfr.=confronta|vs.=versus|tel.=telefono|ca.=circa|sig.=signore|dott.=dottore|prof.=professore|avv.=avvocato',
  bases: 'm=metro|g=grammo|l=litro|L=litro|W=watt|Wh=wattora/wattora|*B=byte|*b=bit|*bps=bit al secondo/bit al secondo|V=volt|*A=ampere|*Ah=ampere ora/ampere ora|Hz=hertz|cal=caloria|s=secondo',
  prefixes: 'chilo mega giga tera centi milli micro',
  units:
    'mq=metro quadrato|mc=metro cubo|kg=chilo|hg=etto|gr=grammo|ha=ettaro|t=tonnellata|dB=decibel|°C=grado Celsius|°F=grado Fahrenheit|°=grado|h=ora|min=minuto|sec=secondo',
  square: '$ quadrato',
  cubic: '$ cubo',
  currencies: 'dollaro centesimo|euro/euro centesimo|sterlina penny/pence|rupia paisa/paise|yen|real/real centavo/centavos',
  scales: 'milioni=milioni di|milione=milione di|miliardi=miliardi di|miliardo=miliardo di|mila=mila|mln=milioni di|mld=miliardi di|M=milioni di|k=mila',
  elided: ' di ',
  phone: '3\\d\\d[ .-]?\\d{3}[ .-]?\\d{4}|3\\d\\d[ .-]?\\d{7}|0\\d{1,3}[ ./-]\\d{5,8}|0\\d{1,3} \\d{2,4} \\d{2,4}(?: \\d{2,4})?',
  beforeHour: 'ore|alle|dalle|le|all\'all',
  beforeDay: 'il|del|al|dal|giorno',
  counted: /anno|mese|giorno|settimana|ora|minuto|secondo|volta|persona|metro|chilometro|chilo|litro|libro|pagina|milione|miliardo|notte|donna|cucchiaio|cucchiaino|tazza|bicchiere|uovo/u,
  pointIsDecimal: false,
  plural: (noun) => noun.replace(/a(?= |$)/g, 'e').replace(/o(?= |$)/g, 'i'),
  isFeminine: (noun) => /a$|notte/.test(noun),
  isSingular: () => false,
  count: (digits, noun, feminine) => {
    if (digits !== '1') return `${digits} ${noun}`;
    if (feminine) return /^[aeio]/.test(noun) ? `un'${noun}` : `una ${noun}`;
    return `${/^(?:s[^aeiou]|z|y|ps)/.test(noun) ? 'uno' : 'un'} ${noun}`;
  },
  cents: (_, digits) => `e ${digits}`,
  per: (noun) => (/^[aeio]/.test(noun) ? `all'${noun}` : `${noun.endsWith('a') ? 'alla' : 'al'} ${noun}`),
  date: (day, month, year) => `${day === 1 ? 'primo' : day} ${month}${year && ` ${year}`}`,
  clock: (hour, minute) => `${hour === 1 ? 'una' : hour}${minute === 0 ? '' : ` e ${minute}`}`,
  fraction: (count, of) => (count === 1 ? `un ${PARTS[of]}` : `${count} ${PARTS[of]!.replace(/o$/, 'i').replace('zzi', 'zzi')}`),
  half: 'e mezzo',
  own: (text) =>
    withoutRoman(
      text
        .replace(/(?<!\p{L})san (?=[AEIOU])/gu, "sant'")
        .replace(/(?<!\p{L})san (?=(?!Luca|Nicola|Mattia)\p{Lu}\p{Ll}{1,20}a(?!\p{L}))/gu, 'santa ')
        // Behind an apostrophe espeak-ng does not read figures on.
        .replace(/(?<=\p{L}')(1|8[0-9]?|11)(?![\d.,]?\d)([ºª°]?)/gu, elided)
        .replace(/(?<![\p{L}\d.,])(\d{1,3})°(?=\s\p{Ll}{4,})(?! (?:sotto|sopra|all|nell|cent|lati|long|fino|quando))/gu, '$1º')
        .replace(/(?<![\p{L}\d.,])1 (?=(?:gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre)(?!\p{L}))/gu, 'primo '),
      {
        centuries: 'secol[oi]|sec\\.',
        counted: 'capitolo|tomo|volume|atto|libro|parte|titolo|articolo|fase|tipo|guerra mondiale|canto|sezione',
        kings: 'Luigi|Carlo|Enrico|Filippo|Francesco|Napoleone|Giovanni|Paolo|Pio|Benedetto|Leone|Gregorio|Guglielmo|Federico|Giorgio|Edoardo|Umberto|Amedeo|Emanuele|Bonifacio|Sisto|Giulio',
        queens: 'Elisabetta|Caterina|Giovanna',
        ordinal: (value, feminine) => `${value}${feminine ? 'ª' : 'º'}`,
      },
    ),
}; // prettier-ignore

/** A number or an ordinal in words, where an article is elided before it: 1, 8, 11 and the eighties. */
function elided(all: string, digits: string, sign: string): string {
  if (sign !== '') {
    const stem = { 8: 'ottav', 11: 'undicesim' }[digits];
    return stem === undefined ? all : stem + (sign === 'ª' ? 'a' : 'o');
  }
  return { 1: 'uno', 8: 'otto', 11: 'undici' }[digits] ?? `ottanta${digits.endsWith('0') ? '' : ` ${digits[1]}`}`;
}
