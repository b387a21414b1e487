/** Writes out units after numbers, coordinates and durations. */

const NAMES: readonly (readonly [string, string, string?])[] = [
  ['km²', 'square kilometer'], ['m²', 'square meter'], ['m2', 'square meter'], ['km2', 'square kilometer'], ['m3', 'cubic meter'], ['cm²', 'square centimeter'], ['mm²', 'square millimeter'], ['ft²', 'square foot', 'square feet'],
  ['in²', 'square inch', 'square inches'], ['mi²', 'square mile'], ['m³', 'cubic meter'], ['cm³', 'cubic centimeter'], ['km³', 'cubic kilometer'],
  ['ft³', 'cubic foot', 'cubic feet'], ['sq ft', 'square foot', 'square feet'], ['sq. ft', 'square foot', 'square feet'], ['sq mi', 'square mile'],
  ['km', 'kilometer'], ['cm', 'centimeter'], ['mm', 'millimeter'], ['μm', 'micrometer'], ['nm', 'nanometer'], ['m', 'meter'],
  ['mi', 'mile'], ['yd', 'yard'], ['yds', 'yard'], ['ft', 'foot', 'feet'], ['in.', 'inch', 'inches'],
  ['kg', 'kilogram'], ['mg', 'milligram'], ['μg', 'microgram'], ['mcg', 'microgram'], ['g', 'gram'],
  ['lbs', 'pounds', 'pounds'], ['lb', 'pound'], ['oz', 'ounce'], ['fl oz', 'fluid ounce'], ['fl. oz', 'fluid ounce'],
  ['ml', 'milliliter'], ['mL', 'milliliter'], ['cl', 'centiliter'], ['cL', 'centiliter'], ['dl', 'deciliter'], ['dL', 'deciliter'],
  ['μl', 'microliter'], ['μL', 'microliter'], ['L', 'liter'], ['gal', 'gallon'], ['qt', 'quart'],
  ['tsp', 'teaspoon'], ['tbsp', 'tablespoon'], ['Tbsp', 'tablespoon'], ['tbs', 'tablespoon'],
  ['ha', 'hectare'], ['mmol', 'millimole'], ['mol', 'mole'], ['ppm', 'part per million', 'parts per million'], ['px', 'pixel'],
  ['mph', 'mile per hour', 'miles per hour'], ['rpm', 'revolution per minute', 'revolutions per minute'],
  ['fps', 'frame per second', 'frames per second'], ['kn', 'knot'],
  ['kWh', 'kilowatt hour'], ['MWh', 'megawatt hour'], ['GWh', 'gigawatt hour'], ['TWh', 'terawatt hour'], ['Wh', 'watt hour'],
  ['kW', 'kilowatt'], ['MW', 'megawatt'], ['GW', 'gigawatt'], ['mW', 'milliwatt'], ['W', 'watt'], ['kcal', 'kilocalorie'], ['kJ', 'kilojoule'],
  ['kV', 'kilovolt'], ['mV', 'millivolt'], ['V', 'volt'], ['mA', 'milliampere'], ['mAh', 'milliampere hour'],
  ['Ω', 'ohm'], ['kΩ', 'kilohm'], ['MΩ', 'megohm'], ['dB', 'decibel'], ['Nm', 'newton meter'], ['N·m', 'newton meter'],
  ['ft-lb', 'foot-pound'], ['ft-lbs', 'foot-pound'], ['ft·lb', 'foot-pound'],
  ['mmHg', 'millimeter of mercury', 'millimeters of mercury'], ['Pa', 'pascal'], ['kPa', 'kilopascal'], ['hPa', 'hectopascal'], ['MPa', 'megapascal'], ['psi', 'P S I', 'P S I'],
  ['°C', 'degree Celsius', 'degrees Celsius'], ['°F', 'degree Fahrenheit', 'degrees Fahrenheit'], ['°', 'degree'],
  ['GHz', 'gigahertz', 'gigahertz'], ['MHz', 'megahertz', 'megahertz'], ['kHz', 'kilohertz', 'kilohertz'], ['Hz', 'hertz', 'hertz'],
  ['PB', 'petabyte'], ['TB', 'terabyte'], ['GB', 'gigabyte'], ['MB', 'megabyte'], ['KB', 'kilobyte'], ['kB', 'kilobyte'],
  ['TiB', 'tebibyte'], ['GiB', 'gibibyte'], ['MiB', 'mebibyte'], ['KiB', 'kibibyte'],
  ['Gb', 'gigabit'], ['Mb', 'megabit'], ['Gbit', 'gigabit'], ['Mbit', 'megabit'], ['kbit', 'kilobit'],
  ['Gbps', 'gigabit per second', 'gigabits per second'], ['Mbps', 'megabit per second', 'megabits per second'],
  ['kbps', 'kilobit per second', 'kilobits per second'], ['Kbps', 'kilobit per second', 'kilobits per second'],
  ['μs', 'microsecond'], ['ns', 'nanosecond'], ['ms', 'millisecond'], ['s', 'second'], ['sec', 'second'], ['secs', 'second'],
  ['bn', 'billion', 'billion'], ['tn', 'trillion', 'trillion'], ['min', 'minute'], ['mins', 'minute'], ['h', 'hour'], ['hr', 'hour'], ['hrs', 'hours', 'hours'],
]; // prettier-ignore
/** Further units after a slash: 5 m/s², $20/mo. */
const RATES: ReadonlyMap<string, string> = new Map(Object.entries({
  's²': 'second squared', d: 'day', wk: 'week', mo: 'month', yr: 'year', y: 'year', l: 'liter', day: 'day', week: 'week', month: 'month', year: 'year',
  '100 km': '100 kilometers', '100 g': '100 grams', '100 ml': '100 milliliters', '100 mL': '100 milliliters',
  hour: 'hour', minute: 'minute', second: 'second', person: 'person',
})); // prettier-ignore

const UNITS = new Map(NAMES.map(([symbol, one, many]) => [symbol, [one, many ?? `${one}s`] as const]));
const escaped = (symbols: readonly string[]): string =>
  symbols.toSorted((a, b) => b.length - a.length).map((symbol) => symbol.replace(/[.°]/g, '\\$&')).join('|'); // prettier-ignore
const PER = escaped([...RATES.keys(), ...[...UNITS.keys()].filter((symbol) => !/[ °.]/.test(symbol))]);
/** A number with a unit. The point of an abbreviated unit is part of it within a sentence. */
const MEASURE = new RegExp(
  `(?<!\\d)(?<!\\d{3},)(\\d{1,3}(?:,\\d{3})+(?!\\d)(?:\\.\\d+)?|\\d+(?:\\.\\d+)?)\\s?(${escaped([...UNITS.keys()])})(?:/(${PER}))?(?![\\w'²³]|/(?!\\d))(?:\\.(?=\\s+[a-z]))?`,
  'g',
);

/** A fraction in words with a unit. */
const PART = new RegExp(
  `(\\band (?:an?|\\d) )?\\b((?:half|third|quarter|fifth|sixth|eighth)s?) (${escaped(['tsp', 'tbsp', 'Tbsp', 'oz', 'fl oz', 'lb', 'mi', 'km', 'kg', 'L', 'in.', 'gal'])})(?![\\w'/])(?:\\.(?=\\s+[a-z]))?`,
  'g',
);

/** Name of the unit after a slash: "hour" of $20/h; undefined if it is no unit. */
export const perWhat = (symbol: string): string | undefined => RATES.get(symbol) ?? UNITS.get(symbol)?.[0];

/** Writes out units after numbers. Four-digit numbers get a comma, so that 1,905 meters are not read as a year. */
export function units(text: string): string {
  return text
    .replace(/º(?=[CF]\b)|(?<=\d\s?)℃|(?<=\d\s?)℉/g, (sign) => ({ º: '°', '℃': '°C', '℉': '°F' })[sign]!)
    .replace(/(?<=\d)°\s(?=[CF]\b)/g, '°')
    .replace(/(?<=\d\s?)µ/g, 'μ')
    .replace(/(\d\s?(?:ft\.?|feet|foot)\s\d{1,2}\s?)in\b\.?(?=\s|[,;)]|$)/g, '$1in.')
    .replace(
      PART,
      (_, and: string | undefined, part: string, symbol: string) => `${and ?? ''}${part} ${UNITS.get(symbol)![and === undefined ? 0 : 1]}`,
    )
    .replace(MEASURE, (_, count: string, symbol: string, per?: string) => {
      const [one, many] = UNITS.get(symbol)!;
      return `${grouped(count)} ${Number(count.replace(/,/g, '')) === 1 ? one : many}${per === undefined ? '' : ` per ${perWhat(per)}`}`;
    });
}

/** Writes out geographic coordinates: 40°26′46″N, 30° W. */
export function coordinates(text: string): string {
  return text
    .replace(
      /(\d)°\s?(\d{1,2})[′']\s?(?:(\d{1,2}(?:\.\d{1,9})?)(?:″|"|''))?/g,
      (_, degrees: string, minutes: string, seconds?: string) =>
        `${degrees}° ${minutes} minutes${seconds === undefined ? '' : ` ${seconds} seconds`}`,
    )
    .replace(
      /(?<=\d°|\d° \d{1,2} minutes| seconds)\s?([NSEW])\b/g,
      (_, point: string) => ` ${{ N: 'north', S: 'south', E: 'east', W: 'west' }[point]!}`,
    );
}

/** Adds the comma to a four-digit number, which tells it from a year. */
export const grouped = (number: string): string => number.replace(/^(\d)(\d{3})(?!\d)/, '$1,$2');

const CLOCK_UNITS = ['day', 'hour', 'minute', 'second'];
const LAPSE =
  /(?<![\w.:])\d{1,3}\s?(?:d|h|hrs?|m|mins?)\s?\d{1,2}\s?(?:h|hrs?|m|mins?|s|secs?)(?:\s?\d{1,2}\s?(?:m|mins?|s|secs?)){0,2}(?![\w'])/g;

/** Writes out durations, the greater unit first: 1h 30m, 2m30s, 1d 4h. 14h30 is a time of day, and so is 8h30 after "at", "from" or "until". */
export function durations(text: string): string {
  const times = text
    .replace(
      /(?<![\w.:])(1\d|2[0-3])h([0-5]\d)(?![\w:])|(?<=\b(?:at|from|until) )(\d)h([0-5]\d)(?![\w:])/g,
      (_, a?: string, b?: string, c?: string, d?: string) => `${a ?? c}:${b ?? d}`,
    )
    .replace(/(?<![\w.:])(\dh[0-5]\d)(?![\w:])/g, '$1m');
  return times.replace(LAPSE, (all) => {
    const parts = [...all.matchAll(/(\d+)\s?([dhms])[a-z]*/g)].map(
      ([, count, letter]) => [Number(count), 'dhms'.indexOf(letter!)] as const,
    );
    const falls = parts.every(([, unit], i) => i === 0 || unit > parts[i - 1]![1]);
    return falls ? parts.map(([count, unit]) => `${count} ${CLOCK_UNITS[unit]}${count === 1 ? '' : 's'}`).join(' ') : all;
  });
}
