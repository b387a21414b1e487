/** How French reads what is not written in words. */

import type { Notation } from './notation.ts';
import { valueOf } from '../roman-numerals.ts';
import { withoutRoman } from './roman.ts';

const TENS = ['', '', 'vingt', 'trente', 'quarante', 'cinquante', 'soixante', '', 'quatre-vingt'];
const STEMS = ['', 'unième', 'deuxième', 'troisième', 'quatrième', 'cinquième', 'sixième', 'septième', 'huitième', 'neuvième', 'dixième', 'onzième', 'douzième', 'treizième', 'quatorzième', 'quinzième', 'seizième', 'dix-septième', 'dix-huitième', 'dix-neuvième']; // prettier-ignore
const PARTS = ['', '', 'demi', 'tiers', 'quart', 'cinquième', 'sixième', 'septième', 'huitième', 'neuvième', 'dixième'];

function ordinal(value: number, feminine: boolean): string {
  if (value === 1) return feminine ? 'première' : 'premier';
  if (value >= 100)
    return value % 100 === 0 ? `${value === 100 ? '' : `${value / 100} `}centième` : `${value - (value % 100)} ${stem(value % 100)}`;
  return stem(value);
}

function stem(value: number): string {
  if (value < 20) return STEMS[value]!;
  const tens = value >= 80 ? 8 : value >= 60 ? 6 : Math.floor(value / 10);
  const rest = value - 10 * tens;
  if (rest === 0) return `${TENS[tens]!.replace(/e$/, '')}ième`;
  return `${TENS[tens]}${(rest === 1 || rest === 11) && tens < 8 ? ' et ' : '-'}${STEMS[rest]}`;
}

/** Nouns that are counted, in the feminine. */
const FEMININE =
  'heure|personne|année|fois|minute|seconde|semaine|page|femme|fille|voiture|journée|place|ville|maison|question|partie|étoile|chambre|nuit|pièce|cuillère|cuillerée|tasse|tranche|victoire|société|entreprise|pomme|chose|équipe';
const UNITS = ['', '', 'deux', 'trois', 'quatre', 'cinq', 'six', 'sept', 'huit', 'neuf'];

/** The notation of French. */
export const FR: Notation = {
  names:
    "point|virgule|slash|arobase|point d'interrogation|égale|et|deux-points|tiret bas|tiret|plus|moins|fois|divisé par|à|sur|pour cent|pour mille|hashtag|numéro|plus ou moins|racine de|au carré|au cube|puissance|inférieur à|supérieur à|supérieur ou égal à|inférieur ou égal à|différent de|environ",
  point: 'point',
  domains: 'fr|be|ch|ca',
  months: 'janvier février mars avril mai juin juillet août septembre octobre novembre décembre'.split(' '),
  note: 'Note',
  done: 'fait',
  titles: 'M.=monsieur|MM.=messieurs|Mme=madame|Mlle=mademoiselle|Dr=docteur|Dr.=docteur|Pr=professeur|Pr.=professeur|Me=maître|St=saint|Ste=sainte|St-=saint|Cie=compagnie|av.=avenue',
  numbered: 'p.=page|pp.=pages|n°=numéro|art.=article|chap.=chapitre|vol.=volume|fig.=figure|tél.=téléphone|env.=environ',
  short: 'etc.=et cetera|p. ex.=par exemple|p.ex.=par exemple|c.-à-d.=c\'est-à-dire|càd=c\'est-à-dire|av. J.-C.=avant Jésus-Christ|apr. J.-C.=après Jésus-Christ|J.-C.=Jésus-Christ|S. A.=S A|cf.=confer|É.-U.=États-Unis|vs.=versus|tél.=téléphone|env.=environ',
  bases: 'm=mètre|g=gramme|l=litre|L=litre|W=watt|Wh=wattheure|*B=byte|*o=octet|*b=bit|*bps=bit par seconde|V=volt|*A=ampère|*Ah=ampère-heure|Hz=hertz/hertz|cal=calorie|s=seconde',
  prefixes: 'kilo méga giga téra centi milli micro',
  units: 'kg=kilo|ha=hectare|t=tonne|dB=décibel|°C=degré Celsius|°F=degré Fahrenheit|°=degré|h=heure|min=minute|mn=minute|sec=seconde',
  square: '$ carré',
  cubic: '$ cube',
  currencies: 'dollar cent|euro centime|livre penny/pence|roupie paisa|yen|réal/réaux centavo',
  scales: 'millions=millions de|million=million de|milliards=milliards de|milliard=milliard de|mille=mille|M=millions de|Md=milliards de|Mds=milliards de|k=mille|K=mille',
  elided: " d'",
  phone: '0\\d(?:[ .-]?\\d\\d){4}',
  beforeHour: 'à|dès|vers',
  beforeDay: 'le|du|au',
  counted: new RegExp(`(?:${FEMININE}|an|euro|enfant|habitant|élève|homme|article|emploi)s?`, 'u'),
  pointIsDecimal: false,
  plural: (noun) => noun.replace(/^\S+| c\S+/g, '$&s'),
  isFeminine: (noun) => /^(?:livre|roupie|tonne|kilocalorie|(?:milli)?seconde|minute|heure)/.test(noun) || new RegExp(`^(?:${FEMININE})s?$`, 'u').test(noun),
  isSingular: (value) => value < 2,
  count: (digits, noun, feminine) => {
    const value = Number(digits);
    if (value === 1 && !feminine) return `un ${noun}`;
    const [hundreds, rest, tens] = [Math.floor((value % 1000) / 100), value % 100, Math.floor((value % 100) / 10)];
    // What is bound to a vowel: deux cents_ans, vingt et un_ans, neuf_heures.
    const bound = /^[aeiouyéèêôh]/.test(noun);
    if (bound && rest === 0 && hundreds > 1) return `${value > 999 ? value - (value % 1000) : ''} ${UNITS[hundreds]} cents ${noun}`.trim();
    if (value === 9 && /^(?:an|heure)s$/.test(noun)) return `neuf ${noun}`;
    if (!(feminine || bound) || rest % 10 !== 1 || rest === 11 || tens === 7 || tens === 9) return `${digits} ${noun}`;
    const one = feminine ? 'une' : 'un';
    const tail = tens === 0 ? one : `${TENS[tens]}${tens === 8 ? '-' : ' et '}${one}`;
    return `${value > rest ? `${value - rest} ` : ''}${tail} ${noun}`;
  },
  cents: (_, digits) => digits,
  per: (noun) => `par ${noun}`,
  date: (day, month, year) => `${day === 1 ? 'premier' : day} ${month}${year && ` ${year}`}`,
  clock: (hour, minute) => `${FR.count(String(hour), hour < 2 ? 'heure' : 'heures', true)}${minute === 0 ? '' : ` ${minute}`}`,
  fraction: (count, of) => `${count} ${PARTS[of]}${count > 1 && of !== 3 ? 's' : ''}`,
  half: 'et demi',
  own: (text) =>
    withoutRoman(text, {
      centuries: 'siècles?',
      counted: 'chapitre|tome|volume|acte|livre|partie|titre|article|phase|type|guerre mondiale|section',
      kings: 'Louis|Charles|Henri|Philippe|Napoléon|Jean|Paul|Pie|Léon|Georges?|Jacques',
      queens: 'Élisabeth',
      ordinal: String,
    })
      .replace(/(?<=\d)\s?([hj])\/(?=\d)/g, (_, unit: string) => (unit === 'h' ? ' heures sur ' : ' jours sur '))
      .replace(/[ᵉʳʰ]/g, (letter) => ({ ᵉ: 'e', ʳ: 'r', ʰ: 'h' })[letter]!)
      .replace(/(?<![\p{L}\p{M}\d])([IVX][IVXLC]{0,8})(ers?|res?|ères?|es?|èmes?|nde?s?)(?![\p{L}\d])/gu, (all, numeral: string, ending: string) => {
        const value = valueOf(numeral);
        return value === undefined ? all : ordinal(value, /^[rè]/.test(ending));
      })
      // espeak-ng adds "romain" to other numerals.
      .replace(/(?<![\p{L}\p{M}\d.-])[IVX]{2,8}(?![\p{L}\p{M}\d.-])/gu, (numeral) => String(valueOf(numeral) ?? numeral))
      .replace(/(?<![\p{L}\d.,])(\d{1,3})(ers?|res?|ères?|[eè]?mes?|es?|nde?s?)(?![\p{L}\d])/gu, (_, digits: string, ending: string) =>
        digits === '2' && ending.startsWith('n') ? (ending.startsWith('nd') && ending.includes('e') ? 'seconde' : 'second') : ordinal(Number(digits), /^[rè]/.test(ending)) + (ending.endsWith('s') ? 's' : ''),
      )
      .replace(/(?<![\p{L}\d.,])1 (?=(?:janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre)(?!\p{L}))/gu, 'premier '),
}; // prettier-ignore
