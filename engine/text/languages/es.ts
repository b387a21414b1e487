/** How Spanish reads what is not written in words. */

import type { Notation } from './notation.ts';
import { withoutRoman } from './roman.ts';

const HUNDREDS = ['', 'ciento', 'doscient', 'trescient', 'cuatrocient', 'quinient', 'seiscient', 'setecient', 'ochocient', 'novecient'];
const PARTS = ['', '', 'medio', 'tercio', 'cuarto', 'quinto', 'sexto', 'séptimo', 'octavo', 'noveno', 'décimo'];

/** A number below 1000 that ends with one, before a noun: un, veintiún, 40 y una; undefined for others. */
function endingWithOne(value: number, feminine: boolean): string | undefined {
  const [hundreds, rest] = [Math.floor(value / 100), value % 100];
  if (rest % 10 !== 1 || rest === 11) return undefined;
  const last = feminine ? 'una' : 'un';
  const tail = rest === 1 ? last : rest === 21 ? (feminine ? 'veintiuna' : 'veintiún') : `${rest - 1} y ${last}`;
  return `${hundredsOf(hundreds, feminine)} ${tail}`.trim();
}

const hundredsOf = (hundreds: number, feminine: boolean): string => `${HUNDREDS[hundreds]}${hundreds > 1 ? (feminine ? 'as' : 'os') : ''}`;

/** A number from 1000 with its thousands and millions apart, where espeak-ng says "uno" before them: veintiún mil 500. */
function thousands(digits: string): string {
  const value = Number(digits);
  const [millions, middle, rest] = [Math.floor(value / 1e6), Math.floor(value / 1000) % 1000, value % 1000];
  const many = millions < 1000 ? (endingWithOne(millions, false) ?? millions) : thousands(String(millions));
  const parts = [
    millions > 0 && `${many} ${millions === 1 ? 'millón' : 'millones'}`,
    middle > 0 && (middle === 1 ? 'mil' : `${endingWithOne(middle, false) ?? middle} mil`),
    rest > 0 && rest,
  ];
  return parts.filter((part) => part !== false).join(' ');
}

/** The notation of Spanish. */
export const ES: Notation = {
  names:
    'punto|coma|barra|arroba|interrogación|igual a|y|dos puntos|guion bajo|guion|más|menos|por|entre|a|sobre|por ciento|por mil|hashtag|número|más menos|raíz de|al cuadrado|al cubo|elevado a|menor que|mayor que|mayor o igual que|menor o igual que|distinto de|aproximadamente',
  point: 'punto',
  domains: 'es|mx|ar|cl|co',
  months: 'enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre'.split(' '),
  note: 'Nota',
  done: 'hecho',
  titles: 'Sr.=señor|Sra.=señora|Srta.=señorita|Sres.=señores|Sras.=señoras|Dr.=doctor|Dra.=doctora|D.=don|D.ª=doña|Dña.=doña|Prof.=profesor|Profa.=profesora|Ing.=ingeniero|Sto.=santo|Sta.=santa|Av.=avenida|C/=calle|c/=calle',
  numbered: 'pág.=página|págs.=páginas|p.=página|pp.=páginas|núm.=número|n.º=número|nº=número|art.=artículo|cap.=capítulo|vol.=volumen|fig.=figura|tel.=teléfono|aprox.=aproximadamente',
  short: 'etc.=etcétera|Ud.=usted|Uds.=ustedes|p. ej.=por ejemplo|p.ej.=por ejemplo|EE. UU.=Estados Unidos|EE.UU.=Estados Unidos|EEUU=Estados Unidos|a. C.=antes de Cristo|a.C.=antes de Cristo|d. C.=después de Cristo|d.C.=después de Cristo|S. A.=S A|s/n=sin número|vs.=versus|tel.=teléfono|aprox.=aproximadamente',
  bases: 'g=gramo|l=litro|L=litro|W=vatio|Wh=vatio hora|*B=byte|*b=bit|*bps=bit por segundo|V=voltio|*A=amperio|*Ah=amperio hora|Hz=hercio|cal=caloría|s=segundo',
  prefixes: 'kilo mega giga tera centi mili micro',
  units:
    'm=metro|km=kilómetro|cm=centímetro|mm=milímetro|kg=kilo|ha=hectárea|t=tonelada|dB=decibelio|°C=grado Celsius|°F=grado Fahrenheit|°=grado|h=hora|hs=hora|min=minuto|seg=segundo',
  square: '$ cuadrado',
  cubic: '$ cúbico',
  currencies: 'dólar/dólares centavo|euro céntimo|libra penique|rupia paisa|yen/yenes|real/reales centavo',
  scales: 'mil millones=mil millones de|millones=millones de|millón=millón de|billones=billones de|mil=mil|M=millones de|k=mil',
  elided: ' de ',
  phone: '[6789]\\d{2}[ .-]\\d{3}[ .-]\\d{3}|[6789]\\d{2}(?:[ .-]\\d{2}){3}|9\\d[ .-]\\d{3}[ .-]\\d{2}[ .-]\\d{2}|\\d{2} \\d{4} \\d{4}',
  beforeHour: 'las?|horas',
  beforeDay: 'el|del|al|día',
  counted:
    /(?!(?:unas|unos|ellos|ellas|todos|todas|varios|varias|estos|estas|esos|esas|otros|otras|muchos|muchas|menos|además|apenas|mientras|después|antes)(?!\p{L}))\p{Ll}{2,30}[oa]s|meses|veces|mujeres|año|mes|día|siglo|minuto|segundo|metro|kilo|kilómetro|litro|libro|millón|millones|billones|mil|persona|hora|semana|vez|taza|cucharada|cucharadita|página|noche|mujer/u,
  pointIsDecimal: false,
  plural: (noun) => noun.replace(/^\S+| c\S+/g, '$&s'),
  isFeminine: (noun) => /as?$|^(?:ve[zc]|mujer|noche)/.test(noun) && !/^(?:días?|(?:proble|siste|progra|te|idio|cli|dra|poe|síntom|esque)mas?|mapas?|planetas?|\p{Ll}+istas)$/u.test(noun),
  isSingular: () => false,
  count: (digits, noun, feminine) => {
    const value = Number(digits);
    const [above, rest] = [value - (value % 1000), value % 1000];
    const few = endingWithOne(rest, feminine) ?? (feminine && rest > 199 ? `${hundredsOf(Math.floor(rest / 100), true)} ${rest % 100 || ''}` : undefined);
    // Of the thousands only the hundreds agree: doscientas veintiún mil páginas.
    const group = Math.floor(value / 1000) % 1000;
    const many = feminine && group > 199 ? `${hundredsOf(Math.floor(group / 100), true)} ${endingWithOne(group % 100, false) ?? (group % 100 || '')} mil` : undefined;
    if (few === undefined && many === undefined) return `${digits} ${noun}`;
    const parts = many === undefined ? [above || ''] : [Math.floor(value / 1e6) * 1e6 || '', many];
    return [...parts, few ?? (rest || ''), noun].join(' ').replace(/ {2,}/g, ' ').trim();
  },
  whole: (digits) => (/(?<!^|1)1\d{3}$|(?<!^|1)1\d{6}$|\d{10}/.test(digits) ? thousands(digits) : digits),
  cents: (count) => `con ${count}`,
  per: (noun) => `por ${noun}`,
  date: (day, month, year) => `${day} de ${month}${year && ` de ${year}`}`,
  clock: (hour, minute, said) => {
    const hours = said ? (hour === 1 ? 'una' : hour === 21 ? 'veintiuna' : String(hour)) : ES.count(String(hour), hour === 1 ? 'hora' : 'horas', true);
    if (minute === 0) return hours;
    return `${hours.split(' hora')[0]} ${minute < 10 ? 'y ' : ''}${minute}`;
  },
  fraction: (count, of) => (count === 1 ? `un ${PARTS[of]}` : `${count} ${PARTS[of]}s`),
  half: 'y medio',
  own: (text) =>
    withoutRoman(
      text
        .replace(/(?<![\p{L}\d.,])(\d{1,3})\.?(?:[ºo°](?=\s\p{Ll}{4,})(?! (?:sobre|bajo|cent|lati|long))|º(?!\s?[CF](?!\p{L}))|er[ao]?(?!\p{L})|r[ao](?!\p{L})|[dtvmn]o(?!\p{L}))/gu, (all, digits: string) =>
          all.endsWith('er') ? (digits === '3' ? 'tercer' : 'primer') : all.endsWith('a') ? `${digits}ª` : `${digits}º`,
        )
        .replace(/(?<![\p{L}\d.,])(\d{1,3})\.?(?:ª|[dtvmn]a(?!\p{L}))/gu, '$1ª'),
      {
        centuries: 'siglos?|s\\.',
        counted: 'capítulo|tomo|volumen|acto|libro|parte|título|artículo|fase|tipo|guerra mundial|sección',
        kings: 'Felipe|Carlos|Alfonso|Fernando|Luis|Enrique|Jaime|Pedro|Juan|Pablo|Pío|León|Gregorio|Napoleón|Jorge|Eduardo|Guillermo|Francisco|Benedicto',
        queens: 'Isabel|Catalina|Juana',
        ordinal: (value, feminine) => (value > 10 ? String(value) : `${value}${feminine ? 'ª' : 'º'}`),
      },
    )
      // espeak-ng stresses their ends.
      .replace(/(?<![\d.,])5([ºª])/g, (_, sign: string) => (sign === 'ª' ? 'quinta' : 'quinto')),
}; // prettier-ignore
