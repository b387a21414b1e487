/** How the Portuguese of Brazil reads what is not written in words. */

import type { Notation } from './notation.ts';
import { withoutRoman } from './roman.ts';

const HUNDREDS = [
  '',
  'cento',
  'duzentas',
  'trezentas',
  'quatrocentas',
  'quinhentas',
  'seiscentas',
  'setecentas',
  'oitocentas',
  'novecentas',
];
const PARTS = ['', '', 'meio', 'terço', 'quarto', 'quinto', 'sexto', 'sétimo', 'oitavo', 'nono', 'décimo'];

/** A number below 1000 in the feminine, if it has one: duas, 20 e uma, duzentas e 50. */
function feminineOf(value: number): string {
  const [hundreds, rest] = [Math.floor(value / 100), value % 100];
  const small = rest % 10 > 0 && rest % 10 < 3 && rest !== 11 && rest !== 12;
  if (!small && hundreds < 2) return '';
  const tens = small ? (rest > 20 ? String(rest - (rest % 10)) : '') : String(rest || '');
  return [HUNDREDS[hundreds]!, tens, small ? (rest % 10 === 1 ? 'uma' : 'duas') : ''].filter((part) => part !== '').join(' e ');
}

/** The notation of Brazilian Portuguese. */
export const PT_BR: Notation = {
  names:
    'ponto|vírgula|barra|arroba|interrogação|igual a|e|dois pontos|sublinhado|hífen|mais|menos|vezes|dividido por|a|sobre|por cento|por mil|hashtag|número|mais ou menos|raiz de|ao quadrado|ao cubo|elevado a|menor que|maior que|maior ou igual a|menor ou igual a|diferente de|aproximadamente',
  point: 'ponto',
  domains: 'br|pt',
  months: 'janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro'.split(' '),
  note: 'Nota',
  done: 'feito',
  titles: 'Sr.=senhor|Sra.=senhora|Srta.=senhorita|Srs.=senhores|Dr.=doutor|Dra.=doutora|D.=dom|Prof.=professor|Profa.=professora|Eng.=engenheiro|Sto.=santo|Sta.=santa|Av.=avenida|R.=rua',
  numbered: 'pág.=página|págs.=páginas|p.=página|pp.=páginas|núm.=número|n.º=número|nº=número|art.=artigo|cap.=capítulo|vol.=volume|fig.=figura|tel.=telefone|séc.=século|aprox.=aproximadamente',
  short: 'etc.=etcétera|p. ex.=por exemplo|p.ex.=por exemplo|ex.=exemplo|EUA=Estados Unidos|a.C.=antes de Cristo|a. C.=antes de Cristo|d.C.=depois de Cristo|d. C.=depois de Cristo|S. A.=S A|S/A=S A|Ltda.=limitada|Cia.=companhia|vs.=versus|tel.=telefone|aprox.=aproximadamente|s/n=sem número|séc.=século',
  bases: 'g=grama|l=litro|L=litro|W=watt|Wh=watt-hora/watts-hora|*B=byte|*b=bit|*bps=bit por segundo|V=volt|*A=ampere|*Ah=ampere-hora/amperes-hora|Hz=hertz/hertz|cal=caloria|s=segundo',
  prefixes: 'quilo mega giga tera centi mili micro',
  units:
    'm=metro|km=quilômetro|cm=centímetro|mm=milímetro|kg=quilo|ha=hectare|t=tonelada|dB=decibel/decibéis|°C=grau Celsius|°F=grau Fahrenheit|°=grau|h=hora|hs=hora|min=minuto|seg=segundo',
  square: '$ quadrado',
  cubic: '$ cúbico',
  currencies: 'dólar/dólares centavo|euro centavo|libra pêni/pence|rupia paisa|iene|real/reais centavo',
  scales: 'milhões=milhões de|milhão=milhão de|bilhões=bilhões de|bilhão=bilhão de|trilhões=trilhões de|trilhão=trilhão de|mil=mil|mi=milhões de|bi=bilhões de|M=milhões de|k=mil',
  elided: ' de ',
  phone: '\\d{5}-\\d{3}|\\d{3}\\.\\d{3}\\.\\d{3}-\\d\\d|\\(?\\d\\d\\)? ?9?\\d{4}-\\d{4}|9?\\d{4}-\\d{4}|0800 \\d{3} \\d{4}',
  beforeHour: 'às?|das|as',
  beforeDay: 'o|do|no|ao|em|dia|de|até',
  counted:
    /(?!(?:mas|elas|todas|várias|estas|essas|outras|muitas|suas|apenas|próximas|quantas|minhas)(?!\p{L}))\p{Ll}{2,30}as|vezes|mulheres|pessoa|hora|semana|vez|xícara|colher|colheres|página|noite|noites|mulher/u,
  pointIsDecimal: false,
  plural: (noun) => noun.replace(/^\S+| [cq]\S+/g, '$&s'),
  isFeminine: (noun) => /as?$|^(?:ve[zs]|mulher|noite|colher)/.test(noun) && !/(?:gra|proble|siste|progra|te|idio|cli|dra|poe|sinto|esque)mas?$|^(?:dias?|mapas?|planetas?|\p{Ll}+istas)$/u.test(noun),
  isSingular: (value) => value < 2,
  count: (digits, noun, feminine) => {
    if (!feminine) return `${digits} ${noun}`;
    const value = Number(digits);
    const [above, group, rest] = [Math.floor(value / 1e6) * 1e6, Math.floor(value / 1000) % 1000, value % 1000];
    const [many, few] = [group === 1 ? '' : feminineOf(group), feminineOf(rest)];
    if (many === '' && few === '') return `${digits} ${noun}`;
    const thousands = many === '' ? (group === 0 ? above || '' : above + 1000 * group) : `${above || ''} ${many} mil`;
    const joint = rest > 0 && thousands !== '' && (rest < 100 || rest % 100 === 0) ? 'e' : '';
    return `${thousands} ${joint} ${few || rest || ''} ${noun}`.replace(/ {2,}/g, ' ').trim();
  },
  // espeak-ng leaves out the "e" before hundreds without a rest.
  whole: (digits) => digits.replace(/^(\d+)([1-9]00)((?:000)*)$/, '$1000$3 e $2$3'),
  cents: (count) => `e ${count}`,
  per: (noun) => `por ${noun}`,
  date: (day, month, year) => `${day === 1 ? '1º' : day} de ${month}${year && ` de ${year}`}`,
  clock: (hour, minute) => `${PT_BR.count(String(hour), hour < 2 ? 'hora' : 'horas', true)}${minute === 0 ? '' : ` e ${minute}`}`,
  fraction: (count, of) => `${count} ${PARTS[of]}${count > 1 ? 's' : ''}`,
  half: 'e meio',
  own: (text) =>
    withoutRoman(
      text
        // espeak-ng takes these letters for Roman numerals.
        .replace(/(?<![\p{L}\d.])(?=[IVX]?[CDLM])[CDLMVXI]{2,4}(?![\p{L}\d.])/gu, (letters) => [...letters].join(' '))
        .replace(/(?<=\d)x(?=\d)/g, ' por ')
        // Other numbers of this size may be years.
        .replace(/(?<![\d.,]|\d )2[ .]?000(?= (?:pessoas|mulheres|crianças|horas|vezes|páginas|casas|libras)(?!\p{L}))/gu, 'duas mil')
        .replace(/(?<![\p{L}\d.,])(\d{1,3})\.?(?:º(?!\s?[CF](?!\p{L}))|[o°](?=\s\p{Ll}{4,})(?! (?:sobre|abaixo|acima|cent|lati|long)))/gu, '$1º')
        .replace(/(?<![\p{L}\d.,])(\d{1,3})\.?(?:ª|a(?=\s\p{Ll}{4,}))/gu, '$1ª')
        .replace(/(?<![\p{L}\d.,])1(?= de (?:janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro)(?!\p{L}))/gu, '1º'),
      {
        centuries: 'séculos?|séc\\.',
        counted: 'capítulo|tomo|volume|ato|livro|parte|título|artigo|fase|tipo|guerra mundial|seção',
        kings: 'Pedro|João|Luís|Carlos|Henrique|Filipe|Francisco|Napoleão|Paulo|Pio|Bento|Leão|Gregório|Guilherme|Jorge|Eduardo|Fernando|Afonso|Manuel',
        queens: 'Isabel|Elizabeth|Catarina|Maria',
        ordinal: (value, feminine) => (value > 10 ? String(value) : `${value}${feminine ? 'ª' : 'º'}`),
      },
    ),
}; // prettier-ignore
