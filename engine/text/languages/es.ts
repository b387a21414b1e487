/** How Spanish reads what is not written in words. */

import type { Notation } from './notation.ts';
import { withoutRoman } from './roman.ts';

const HUNDREDS = ['', 'ciento', 'doscient', 'trescient', 'cuatrocient', 'quinient', 'seiscient', 'setecient', 'ochocient', 'novecient'];
const PARTS = ['', '', 'medio', 'tercio', 'cuarto', 'quinto', 'sexto', 'séptimo', 'octavo', 'noveno', 'décimo'];

/** The notation of Spanish. */
export const ES: Notation = {
  signs: {
    '.': 'punto', ',': 'coma', '/': 'barra', '@': 'arroba', '?': 'interrogación', '=': 'igual a', '&': 'y', ':': 'dos puntos', _: 'guion bajo',
    '-': 'guion', '+': 'más', '−': 'menos', '×': 'por', '÷': 'entre', '–': 'a', '⁄': 'sobre', '%': 'por ciento', '‰': 'por mil', '#': 'hashtag',
    '№': 'número', '±': 'más menos', '√': 'raíz de', '²': 'al cuadrado', '³': 'al cubo', '^': 'elevado a', '<': 'menor que', '>': 'mayor que',
    '≥': 'mayor o igual que', '≤': 'menor o igual que', '≠': 'distinto de', '≈': 'aproximadamente',
  },
  point: 'punto',
  domains: '|es|mx|ar|cl|co',
  months: 'enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre'.split(' '),
  note: 'Nota',
  done: 'hecho',
  titles: 'Sr.=señor|Sra.=señora|Srta.=señorita|Sres.=señores|Sras.=señoras|Dr.=doctor|Dra.=doctora|Dres.=doctores|D.=don|D.ª=doña|Dña.=doña|Prof.=profesor|Profa.=profesora|Lic.=licenciado|Ing.=ingeniero|Arq.=arquitecto|Gral.=general|Sto.=santo|Sta.=santa|Mons.=monseñor|Av.=avenida|Avda.=avenida|C/=calle|Pza.=plaza',
  numbered: 'pág.=página|págs.=páginas|p.=página|pp.=páginas|núm.=número|n.º=número|nº=número|n°=número|art.=artículo|cap.=capítulo|vol.=volumen|fig.=figura|tel.=teléfono|tfno.=teléfono|ed.=edición|aprox.=aproximadamente',
  short: 'etc.=etcétera|Ud.=usted|Uds.=ustedes|Vd.=usted|Vds.=ustedes|p. ej.=por ejemplo|p.ej.=por ejemplo|EE. UU.=Estados Unidos|EE.UU.=Estados Unidos|EEUU=Estados Unidos|JJ. OO.=Juegos Olímpicos|JJ.OO.=Juegos Olímpicos|a. C.=antes de Cristo|a.C.=antes de Cristo|d. C.=después de Cristo|d.C.=después de Cristo|S. A.=S A|s/n=sin número|c/u=cada uno|vs.=versus|tel.=teléfono|aprox.=aproximadamente|Cía.=compañía|dpto.=departamento|admón.=administración|km/h=kilómetros por hora',
  units:
    'km=kilómetro|m=metro|cm=centímetro|mm=milímetro|μm=micrómetro|nm=nanómetro|km²=kilómetro cuadrado/kilómetros cuadrados|m²=metro cuadrado/metros cuadrados|cm²=centímetro cuadrado/centímetros cuadrados|m³=metro cúbico/metros cúbicos|cm³=centímetro cúbico/centímetros cúbicos|ha=hectárea|kg=kilo|g=gramo|mg=miligramo|μg=microgramo|t=tonelada|l=litro|L=litro|ml=mililitro|mL=mililitro|cl=centilitro|dl=decilitro|kWh=kilovatio hora/kilovatios hora|MWh=megavatio hora/megavatios hora|kW=kilovatio|MW=megavatio|GW=gigavatio|W=vatio|V=voltio|kV=kilovoltio|A=amperio|mAh=miliamperio hora/miliamperios hora|Ω=ohmio|Hz=hercio|kHz=kilohercio|MHz=megahercio|GHz=gigahercio|dB=decibelio|kcal=kilocaloría|hPa=hectopascal/hectopascales|°C=grado Celsius/grados Celsius|ºC=grado Celsius/grados Celsius|°F=grado Fahrenheit/grados Fahrenheit|°=grado|TB=terabyte|GB=gigabyte|MB=megabyte|KB=kilobyte|kB=kilobyte|Mbps=megabit por segundo/megabits por segundo|Gbps=gigabit por segundo/gigabits por segundo|px=píxel/píxeles|h=hora|hs=hora|min=minuto|s=segundo|seg=segundo|ms=milisegundo',
  currencies:
    '€=euro/euros/céntimo/céntimos|EUR=euro/euros/céntimo/céntimos|$=dólar/dólares/centavo/centavos|USD=dólar/dólares/centavo/centavos|£=libra/libras/penique/peniques|GBP=libra/libras/penique/peniques|BRL=real/reales/centavo/centavos|MXN=peso/pesos/centavo/centavos|ARS=peso/pesos/centavo/centavos|₹=rupia/rupias/paisa/paisas|INR=rupia/rupias/paisa/paisas|¥=yen/yenes|JPY=yen/yenes|CHF=franco suizo/francos suizos',
  scales: 'mil millones=mil millones de|millones=millones de|millón=millón de|billones=billones de|billón=billón de|mil=mil|M=millones de|k=mil|K=mil',
  elided: ' de ',
  phone: '[6789]\\d{2}[ .-]\\d{3}[ .-]\\d{3}|[6789]\\d{2}(?:[ .-]\\d{2}){3}|9\\d[ .-]\\d{3}[ .-]\\d{2}[ .-]\\d{2}|\\d{2} \\d{4} \\d{4}',
  beforeHour: 'las?|horas',
  beforeDay: 'el|del|al|día',
  counted:
    /(?!(?:unas|unos|ellos|ellas|todos|todas|varios|varias|estos|estas|esos|esas|otros|otras|muchos|muchas|menos|además|apenas|mientras|después|antes)(?!\p{L}))\p{Ll}{2,30}[oa]s|meses|veces|mujeres|año|mes|día|siglo|minuto|segundo|metro|kilo|kilómetro|litro|libro|millón|millones|persona|hora|semana|vez|taza|cucharada|cucharadita|página|noche|mujer/u,
  pointIsDecimal: false,
  plural: (noun) => `${noun}s`,
  isFeminine: (noun) => /as?$|^(?:ve[zc]|mujer|noche)/.test(noun) && !/^(?:días?|(?:proble|siste|progra|te|idio|cli|dra|poe|síntom|esque)mas?|mapas?|planetas?|\p{Ll}+istas)$/u.test(noun),
  isSingular: () => false,
  count: (digits, noun, feminine) => {
    const value = Number(digits);
    const [hundreds, rest] = [Math.floor((value % 1000) / 100), value % 100];
    const one = rest % 10 === 1 && rest !== 11;
    if (!one && !(feminine && hundreds > 1)) return `${digits} ${noun}`;
    const thousands = value < 1000 ? '' : value - (value % 1000);
    const hundred = hundreds > 1 ? `${HUNDREDS[hundreds]}${feminine ? 'as' : 'os'}` : HUNDREDS[hundreds];
    const last = feminine ? 'una' : 'un';
    const tail = !one ? rest || '' : rest === 1 ? last : rest === 21 ? (feminine ? 'veintiuna' : 'veintiún') : `${rest - 1} y ${last}`;
    return `${thousands} ${hundred} ${tail} ${noun}`.replace(/ {2,}/g, ' ').trim();
  },
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
          /er$/.test(all) ? (digits === '3' ? 'tercer' : 'primer') : /a$/.test(all) ? `${digits}ª` : `${digits}º`,
        )
        .replace(/(?<![\p{L}\d.,])(\d{1,3})\.?(?:ª|[dtvmn]a(?!\p{L}))/gu, '$1ª'),
      {
        centuries: 'siglos?|s\\.',
        counted: 'capítulo|tomo|volumen|acto|libro|parte|título|artículo|anexo|tabla|figura|fase|tipo|etapa|nivel|guerra mundial|escena|sección|apéndice|edición|congreso',
        kings: 'Felipe|Carlos|Alfonso|Fernando|Luis|Enrique|Jaime|Pedro|Sancho|Ramiro|Juan|Pablo|Pío|Benedicto|León|Gregorio|Inocencio|Clemente|Napoleón|Federico|Alejandro|Nicolás|Jorge|Eduardo|Ricardo|Guillermo|Francisco|Jacobo|Iván|Ramsés|Alberto|Leopoldo',
        queens: 'Isabel|Catalina|María|Juana|Cristina|Margarita|Cleopatra',
        ordinal: (value, feminine) => (value > 10 ? String(value) : `${value}${feminine ? 'ª' : 'º'}`),
      },
    )
      // espeak-ng stresses their ends.
      .replace(/(?<![\d.,])5([ºª])/g, (_, sign: string) => (sign === 'ª' ? 'quinta' : 'quinto')),
}; // prettier-ignore
