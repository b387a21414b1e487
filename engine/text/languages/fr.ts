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

/** The notation of French. */
export const FR: Notation = {
  signs: {
    '.': 'point', ',': 'virgule', '/': 'slash', '@': 'arobase', '?': "point d'interrogation", '=': 'égale', '&': 'et', ':': 'deux-points', _: 'tiret bas',
    '-': 'tiret', '+': 'plus', '−': 'moins', '×': 'fois', '÷': 'divisé par', '–': 'à', '⁄': 'sur', '%': 'pour cent', '‰': 'pour mille', '#': 'hashtag',
    '№': 'numéro', '±': 'plus ou moins', '√': 'racine de', '²': 'au carré', '³': 'au cube', '^': 'puissance', '<': 'inférieur à', '>': 'supérieur à',
    '≥': 'supérieur ou égal à', '≤': 'inférieur ou égal à', '≠': 'différent de', '≈': 'environ',
  },
  point: 'point',
  domains: '|fr|be|ch|ca',
  months: 'janvier février mars avril mai juin juillet août septembre octobre novembre décembre'.split(' '),
  note: 'Note',
  done: 'fait',
  titles: 'M.=monsieur|MM.=messieurs|Mme=madame|Mmes=mesdames|Mlle=mademoiselle|Mlles=mesdemoiselles|Dr=docteur|Dr.=docteur|Pr=professeur|Pr.=professeur|Me=maître|Mgr=monseigneur|St=saint|Ste=sainte|St-=saint|Ste-=sainte|Cie=compagnie|av.=avenue|bd=boulevard|bd.=boulevard',
  numbered: 'p.=page|pp.=pages|n°=numéro|nº=numéro|nos=numéros|art.=article|chap.=chapitre|vol.=volume|fig.=figure|tél.=téléphone|env.=environ|éd.=édition',
  short: 'etc.=et cetera|p. ex.=par exemple|p.ex.=par exemple|c.-à-d.=c\'est-à-dire|càd=c\'est-à-dire|av. J.-C.=avant Jésus-Christ|apr. J.-C.=après Jésus-Christ|J.-C.=Jésus-Christ|S. A.=S A|cf.=confer|vs.=versus|tél.=téléphone|env.=environ|Cie=compagnie|svp=s\'il vous plaît|s.v.p.=s\'il vous plaît|rdv=rendez-vous|RDV=rendez-vous',
  units:
    'km=kilomètre|m=mètre|cm=centimètre|mm=millimètre|μm=micromètre|nm=nanomètre|km²=kilomètre carré/kilomètres carrés|m²=mètre carré/mètres carrés|cm²=centimètre carré/centimètres carrés|m³=mètre cube/mètres cubes|cm³=centimètre cube/centimètres cubes|ha=hectare|kg=kilo|g=gramme|mg=milligramme|μg=microgramme|t=tonne|l=litre|L=litre|ml=millilitre|mL=millilitre|cl=centilitre|dl=décilitre|kWh=kilowattheure|MWh=mégawattheure|kW=kilowatt|MW=mégawatt|GW=gigawatt|W=watt|V=volt|kV=kilovolt|A=ampère|mAh=milliampère-heure/milliampères-heures|Ω=ohm|Hz=hertz/hertz|kHz=kilohertz/kilohertz|MHz=mégahertz/mégahertz|GHz=gigahertz/gigahertz|dB=décibel|kcal=kilocalorie|hPa=hectopascal|°C=degré Celsius/degrés Celsius|ºC=degré Celsius/degrés Celsius|°F=degré Fahrenheit/degrés Fahrenheit|°=degré|To=téraoctet|Go=gigaoctet|Mo=mégaoctet|Ko=kilooctet|ko=kilooctet|TB=térabyte|GB=gigabyte|MB=mégabyte|Mbps=mégabit par seconde/mégabits par seconde|Mbit=mégabit|Gbit=gigabit|px=pixel|h=heure|min=minute|mn=minute|s=seconde|sec=seconde|ms=milliseconde',
  currencies:
    '€=euro/euros/centime/centimes|EUR=euro/euros/centime/centimes|$=dollar/dollars/cent/cents|USD=dollar/dollars/cent/cents|£=livre/livres/penny/pence|GBP=livre/livres/penny/pence|BRL=réal/réaux/centavo/centavos|₹=roupie/roupies/paisa/paise|INR=roupie/roupies/paisa/paise|¥=yen/yens|JPY=yen/yens|CHF=franc suisse/francs suisses',
  scales: 'millions=millions de|million=million de|milliards=milliards de|milliard=milliard de|mille=mille|M=millions de|Md=milliards de|Mds=milliards de|k=mille|K=mille',
  elided: " d'",
  phone: '0\\d(?:[ .-]?\\d\\d){4}',
  beforeHour: 'à|dès|vers',
  beforeDay: 'le|du|au',
  counted:
    /(?:heure|personne|année|fois|minute|seconde|semaine|page|femme|fille|voiture|journée|place|ville|maison|question|partie|étoile|chambre|nuit|pièce|cuillère|cuillerée|tasse|tranche|victoire|société|entreprise|pomme|chose|équipe)s?/u,
  pointIsDecimal: false,
  plural: (noun) => noun.replace(/^[^ ]+/, '$&s'),
  isFeminine: (noun) => /^(?:livre|roupie|tonne|kilocalorie|(?:milli)?seconde|minute|heure)/.test(noun) || FR.counted!.test(noun),
  isSingular: (value) => value < 2,
  count: (digits, noun, feminine) => {
    const value = Number(digits);
    if (value === 1 && !feminine) return `un ${noun}`;
    const [rest, tens] = [value % 100, Math.floor((value % 100) / 10)];
    if (!feminine || rest % 10 !== 1 || rest === 11 || tens === 7 || tens === 9) return `${digits} ${noun}`;
    const tail = tens === 0 ? 'une' : `${TENS[tens]}${tens === 8 ? '-' : ' et '}une`;
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
      counted: 'chapitre|tome|volume|acte|livre|partie|titre|article|annexe|tableau|figure|phase|type|étape|niveau|guerre mondiale|scène|section|édition',
      kings: 'Louis|Charles|Henri|Philippe|François|Napoléon|Jean|Paul|Pie|Benoît|Léon|Grégoire|Innocent|Clément|Guillaume|Frédéric|Alexandre|Nicolas|Georges?|Édouard|Richard|Jacques|Ivan|Ramsès|Albert|Léopold|Ferdinand|Pierre',
      queens: 'Élisabeth|Elizabeth|Catherine|Marie|Christine|Marguerite|Cléopâtre',
      ordinal: String,
    })
      .replace(/[ᵉʳʰ]/g, (letter) => ({ ᵉ: 'e', ʳ: 'r', ʰ: 'h' })[letter]!)
      .replace(/(?<![\p{L}\p{M}\d])([IVX][IVXLC]{0,8})(ers?|res?|ères?|es?|èmes?|nde?s?)(?![\p{L}\d])/gu, (all, numeral: string, ending: string) => {
        const value = valueOf(numeral);
        return value === undefined ? all : ordinal(value, /^[rè]/.test(ending));
      })
      .replace(/(?<![\p{L}\d.,])(\d{1,3})(ers?|res?|ères?|[eè]?mes?|es?|nde?s?)(?![\p{L}\d])/gu, (_, digits: string, ending: string) =>
        digits === '2' && ending.startsWith('n') ? (ending.startsWith('nd') && ending.includes('e') ? 'seconde' : 'second') : ordinal(Number(digits), /^[rè]/.test(ending)) + (/s$/.test(ending) ? 's' : ''),
      )
      .replace(/(?<![\p{L}\d.,])1 (?=(?:janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre)(?!\p{L}))/gu, 'premier '),
}; // prettier-ignore
