/** How Italian reads what is not written in words. */

import type { Notation } from './notation.ts';
import { withoutRoman } from './roman.ts';

const PARTS = ['', '', 'mezzo', 'terzo', 'quarto', 'quinto', 'sesto', 'settimo', 'ottavo', 'nono', 'decimo'];

/** The notation of Italian. */
export const IT: Notation = {
  signs: {
    '.': 'punto', ',': 'virgola', '/': 'barra', '@': 'chiocciola', '?': 'punto interrogativo', '=': 'uguale', '&': 'e', ':': 'due punti', _: 'trattino basso',
    '-': 'trattino', '+': 'più', '−': 'meno', '×': 'per', '÷': 'diviso', '–': 'a', '⁄': 'su', '%': 'per cento', '‰': 'per mille', '#': 'hashtag',
    '№': 'numero', '±': 'più o meno', '√': 'radice di', '²': 'al quadrato', '³': 'al cubo', '^': 'alla', '<': 'minore di', '>': 'maggiore di',
    '≥': 'maggiore o uguale a', '≤': 'minore o uguale a', '≠': 'diverso da', '≈': 'circa',
  },
  point: 'punto',
  domains: '|it|ch|eu',
  months: 'gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre'.split(' '),
  note: 'Nota',
  done: 'fatto',
  titles: 'Sig.=signor|Sig.ra=signora|Sig.na=signorina|Sigg.=signori|Sig.re=signore|Dott.=dottor|Dott.ssa=dottoressa|Dr.=dottor|Dr.ssa=dottoressa|Prof.=professor|Prof.ssa=professoressa|Avv.=avvocato|Ing.=ingegner|Arch.=architetto|Geom.=geometra|Rag.=ragionier|On.=onorevole|Gen.=generale|Mons.=monsignor|S.=san|V.le=viale|P.zza=piazza|P.za=piazza',
  numbered: 'p.=pagina|pp.=pagine|pag.=pagina|pagg.=pagine|n.=numero|nn.=numeri|n°=numero|nº=numero|art.=articolo|artt.=articoli|cap.=capitolo|vol.=volume|fig.=figura|tel.=telefono|sec.=secolo|ca.=circa|ed.=edizione',
  short: 'ecc.=eccetera|etc.=eccetera|a.C.=avanti Cristo|a. C.=avanti Cristo|d.C.=dopo Cristo|d. C.=dopo Cristo|p.es.=per esempio|p. es.=per esempio|es.=esempio|S.p.A.=società per azioni|SpA=società per azioni|S.r.l.=S R L|cfr.=confronta|vs.=versus|tel.=telefono|ca.=circa|c.a.=corrente anno|sig.=signore|dott.=dottore|prof.=professore|avv.=avvocato',
  units:
    'km=chilometro|m=metro|cm=centimetro|mm=millimetro|μm=micrometro|nm=nanometro|km²=chilometro quadrato/chilometri quadrati|m²=metro quadrato/metri quadrati|mq=metro quadrato/metri quadrati|cm²=centimetro quadrato/centimetri quadrati|m³=metro cubo/metri cubi|mc=metro cubo/metri cubi|cm³=centimetro cubo/centimetri cubi|ha=ettaro|kg=chilo|hg=etto|g=grammo|gr=grammo|mg=milligrammo|μg=microgrammo|t=tonnellata|l=litro|L=litro|ml=millilitro|mL=millilitro|cl=centilitro|dl=decilitro|kWh=chilowattora/chilowattora|MWh=megawattora/megawattora|kW=chilowatt/chilowatt|MW=megawatt/megawatt|GW=gigawatt/gigawatt|W=watt/watt|V=volt/volt|kV=chilovolt/chilovolt|A=ampere/ampere|mAh=milliampere ora/milliampere ora|Ω=ohm/ohm|Hz=hertz/hertz|kHz=chilohertz/chilohertz|MHz=megahertz/megahertz|GHz=gigahertz/gigahertz|dB=decibel/decibel|kcal=chilocaloria|hPa=ettopascal/ettopascal|°C=grado Celsius/gradi Celsius|ºC=grado Celsius/gradi Celsius|°F=grado Fahrenheit/gradi Fahrenheit|°=grado|TB=terabyte/terabyte|GB=gigabyte/gigabyte|MB=megabyte/megabyte|KB=kilobyte/kilobyte|kB=kilobyte/kilobyte|Mbps=megabit al secondo/megabit al secondo|Gbps=gigabit al secondo/gigabit al secondo|px=pixel/pixel|h=ora|min=minuto|s=secondo|sec=secondo|ms=millisecondo',
  currencies:
    '€=euro/euro/centesimo/centesimi|EUR=euro/euro/centesimo/centesimi|$=dollaro/dollari/centesimo/centesimi|USD=dollaro/dollari/centesimo/centesimi|£=sterlina/sterline/penny/pence|GBP=sterlina/sterline/penny/pence|BRL=real/real/centavo/centavos|₹=rupia/rupie/paisa/paise|INR=rupia/rupie/paisa/paise|¥=yen/yen|JPY=yen/yen|CHF=franco svizzero/franchi svizzeri',
  scales: 'milioni=milioni di|milione=milione di|miliardi=miliardi di|miliardo=miliardo di|mila=mila|mln=milioni di|mld=miliardi di|M=milioni di|k=mila',
  elided: ' di ',
  phone: '3\\d\\d[ .-]?\\d{3}[ .-]?\\d{4}|3\\d\\d[ .-]?\\d{7}|0\\d{1,3}[ ./-]\\d{5,8}|0\\d{1,3} \\d{2,4} \\d{2,4}(?: \\d{2,4})?',
  beforeHour: 'ore|alle|dalle|le|all\'|all',
  beforeDay: 'il|del|al|dal|giorno',
  counted: /anno|mese|giorno|settimana|ora|minuto|secondo|volta|persona|metro|chilometro|chilo|litro|libro|pagina|milione|miliardo|notte|donna|cucchiaio|cucchiaino|tazza|bicchiere|uovo/u,
  pointIsDecimal: false,
  plural: (noun) => noun.replace(/a$/, 'e').replace(/o$/, 'i'),
  isFeminine: (noun) => /a$|notte/.test(noun),
  isSingular: () => false,
  count: (digits, noun, feminine) => {
    if (digits !== '1') return `${digits} ${noun}`;
    if (feminine) return /^[aeio]/.test(noun) ? `un'${noun}` : `una ${noun}`;
    return `${/^(?:s[^aeiou]|z|y|ps)/.test(noun) ? 'uno' : 'un'} ${noun}`;
  },
  cents: (_, digits) => `e ${digits}`,
  per: (noun) => (/^[aeio]/.test(noun) ? `all'${noun}` : `${/a$/.test(noun) ? 'alla' : 'al'} ${noun}`),
  date: (day, month, year) => `${day === 1 ? 'primo' : day} ${month}${year && ` ${year}`}`,
  clock: (hour, minute) => `${hour === 1 ? 'una' : hour}${minute === 0 ? '' : ` e ${minute}`}`,
  fraction: (count, of) => (count === 1 ? `un ${PARTS[of]}` : `${count} ${PARTS[of]!.replace(/o$/, 'i').replace('zzi', 'zzi')}`),
  half: 'e mezzo',
  own: (text) =>
    withoutRoman(
      text
        // Behind an apostrophe espeak-ng does not read figures on.
        .replace(/(?<=\p{L}')(1|8[0-9]?|11)(?![\d.,]?\d)([ºª°]?)/gu, elided)
        .replace(/(?<![\p{L}\d.,])(\d{1,3})°(?=\s\p{Ll}{4,})(?! (?:sotto|sopra|all|nell|cent|lati|long|fino|quando))/gu, '$1º')
        .replace(/(?<![\p{L}\d.,])1 (?=(?:gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre)(?!\p{L}))/gu, 'primo '),
      {
        centuries: 'secol[oi]|sec\\.',
        counted: 'capitolo|tomo|volume|atto|libro|parte|titolo|articolo|allegato|tabella|figura|fase|tipo|livello|guerra mondiale|scena|sezione|canto|edizione',
        kings: 'Luigi|Carlo|Enrico|Filippo|Francesco|Napoleone|Giovanni|Paolo|Pio|Benedetto|Leone|Gregorio|Innocenzo|Clemente|Guglielmo|Federico|Alessandro|Nicola|Giorgio|Edoardo|Riccardo|Giacomo|Ivan|Ramses|Alberto|Leopoldo|Ferdinando|Pietro|Umberto|Amedeo|Emanuele|Bonifacio|Sisto|Giulio|Urbano|Cosimo',
        queens: 'Elisabetta|Caterina|Maria|Cristina|Margherita|Cleopatra|Giovanna',
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
