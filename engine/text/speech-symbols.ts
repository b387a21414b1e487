/** Writes out signs of arithmetic, programs and the internet. */

const FILES =
  'txt|pdf|jpe?g|png|gif|svg|webp|csv|json|ya?ml|toml|ini|log|exe|zip|tar|gz|mp3|mp4|wav|docx?|xlsx?|pptx?|html|css|xml|md|py|tsx?|jsx|sh|rs|go|cpp|java|sql|gguf|safetensors';
const FILE_POINT = new RegExp(`(\\w)\\.(?=(?:${FILES})\\b)`, 'g');
/** A chemical formula; espeak-ng reads CO, SO and NO as words. */
const ELEMENTS = /^(?:(?:H|Li|Be|B|C|N|O|F|Na|Mg|Al|Si|P|S|Cl|K|Ca|Ti|Cr|Mn|Fe|Ni|Cu|Zn|Br|Ag|I|Ba|Hg|Pb|U)\d*)+$/;

/** Separates the elements in chemical formulas with oxygen: CO2 -> C O2, CaCO3 -> C-A C O3. */
export function chemistry(text: string): string {
  return text.replace(/\b(?:[A-Z][a-z]?\d{0,2}){1,8}O[1-9](?![\da-z])(?:[A-Z][a-z]?\d{0,2}){0,8}\b/g, (all) => {
    if (!ELEMENTS.test(all)) return all;
    return all.match(/[A-Z][a-z]?\d*/g)!.map((part) => part.replace(/^([A-Z])([a-z])/, (_, a: string, b: string) => `${a}-${b.toUpperCase()}`)).join(' '); // prettier-ignore
  });
}

/** Writes out the signs that a listener needs to hear, and drops those that only serve the layout. */
export function symbols(text: string): string {
  return chemistry(compared(text))
    .replace(/(\w)²/g, '$1 squared')
    .replace(/(\w)³/g, '$1 cubed')
    .replace(/(\w)\s\+\s(?=\w)/g, '$1 plus ')
    .replace(/±\s?/g, 'plus or minus ')
    .replace(/©\s?/g, 'copyright ')
    .replace(/[™®→←•]/g, ' ')
    .replace(/[:;]-?[)(](?=\s|$)/g, '')
    .replace(/(?<=^|\s)@(?=\w)/g, 'at ')
    .replace(/(\w)_(?=\w)/g, '$1 ')
    .replace(FILE_POINT, '$1 dot ')
    .replace(/~(?=\/)/g, 'tilde ')
    .replace(/\s?&+\s?/g, ' and ')
    .replace(/#(?=\d)/g, 'number ')
    .replace(/(\S)@(?=\S)/g, '$1 at ')
    .replace(/(\d)\s?%/g, '$1 percent')
    .replace(/(\d)\s?‰/g, '$1 per mille')
    .replace(/(\d)x(?=\d)/g, '$1 by ')
    .replace(/(\d)(?:\s?[x×]\s?|\s?\*\s?|\s?·\s?)(?=\d)/g, '$1 times ')
    .replace(/(\d)\s?\+\s?(?=\d)/g, '$1 plus ')
    .replace(/(\d)\s?÷\s?(?=\d)/g, '$1 divided by ')
    .replace(/\s={1,3}\s/g, ' equals ')
    .replace(/(?<!\w)~(?=\d)/g, 'about ');
}

/** Writes out comparisons: "is greater than" between numbers and single letters, "more than" before a number alone. Any other > leads through menus, and stays. */
function compared(text: string): string {
  return text
    .replace(/(?<=\s)[-=]{1,2}>(?=\s)/g, ' ')
    .replace(/\s?(?:!==?|≠|<>)\s?(?=\w)/g, ' is not equal to ')
    .replace(/(?:>=|≥)\s?/g, 'at least ')
    .replace(/(?:<=|≤)\s?/g, 'at most ')
    .replace(/(?<=\d|(?<!\w)\w\s?)\s?>\s?(?=\d|zero\b|\w\b)|(?<=\w)\s>\s(?=\d)/g, ' is greater than ')
    .replace(/(?<=\d|(?<!\w)\w\s?)\s?<\s?(?=\d|zero\b|\w\b)|(?<=\w)\s<\s(?=\d)/g, ' is less than ')
    .replace(/(?<![\w<>=-]|[\w<>=-]\s)<\s?(?=\d)/g, 'less than ')
    .replace(/(?<![\w<>=-]|[\w<>=-]\s)>\s?(?=\d)/g, 'more than ');
}
