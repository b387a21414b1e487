/** Writes kana in the alphabet of misaki, the phonemizer of published Kokoro. */

/** Morae and their phonemes, for each row of the table of kana. */
const ROWS = [
  'あa いi うɯ えe おo ぁa ぃi ぅɯ ぇe ぉo いぇje うぃβi うぇβe うぉβo ゐi ゑe をo わβa ゎβa ゃja ゅjɯ ょjo やja ゆjɯ よjo ゕka ゖke',
  'かka きkʲi くkɯ けke こko がɡa ぎɡʲi ぐɡɯ げɡe ごɡo きぇkʲe きゃkʲa きゅkʲɨ きょkʲo ぎゃɡʲa ぎゅɡʲɨ ぎょɡʲo',
  'くぁkᵝa くぃkᵝi くぇkᵝe くぉkᵝo ぐぁɡᵝa ぐぃɡᵝi ぐぇɡᵝe ぐぉɡᵝo',
  'さsa しɕi すsɨ せse そso ざʣa じʥi ずzɨ ぜʣe ぞʣo しぇɕe しゃɕa しゅɕɨ しょɕo じぇʥe じゃʥa じゅʥɨ じょʥo',
  'たta ちʨi つʦɨ てte とto だda ぢʥi づzɨ でde どdo ちぇʨe ちゃʨa ちゅʨɨ ちょʨo ぢゃʥa ぢゅʥɨ ぢょʥo つぁʦa つぃʦʲi つぇʦe つぉʦo てぃtʲi てゅtʲɨ でぃdʲi でゅdʲɨ とぅtɯ どぅdɯ',
  'なna にɲi ぬnɯ ねne のno にぇɲe にゃɲa にゅɲɨ にょɲo',
  'はha ひçi ふɸɯ へhe ほho ばba びbʲi ぶbɯ べbe ぼbo ぱpa ぴpʲi ぷpɯ ぺpe ぽpo ひぇçe ひゃça ひゅçɨ ひょço びゃbʲa びゅbʲɨ びょbʲo ぴゃpʲa ぴゅpʲɨ ぴょpʲo',
  'ふぁɸa ふぃɸʲi ふぇɸe ふぉɸo ふゅɸʲɨ ふょɸʲo',
  'まma みmʲi むmɯ めme もmo みゃmʲa みゅmʲɨ みょmʲo らɾa りɾʲi るɾɯ れɾe ろɾo りゃɾʲa りゅɾʲɨ りょɾʲo',
  'ゔvɯ ゔぁva ゔぃvʲi ゔぇve ゔぉvo ゔゅbʲɨ ゔょbʲo ーː っʔ',
].join(' ');

/** Nasals that ん becomes before other sounds; ɴ elsewhere. */
const NASALS: readonly (readonly [RegExp, string])[] = [
  [/^[mpb]/, 'm'],
  [/^[kɡ]/, 'ŋ'],
  [/^[ɲʨʥ]/, 'ɲ'],
  [/^[ntdɾz]/, 'n'],
];

/** Phonemes of morae, by their hiragana. */
export type Morae = ReadonlyMap<string, string>;

/** Makes the table of morae. */
export function parseMorae(): Morae {
  return new Map(ROWS.split(' ').map((entry) => [entry.replace(/[^\u3041-\u30ff]+$/, ''), entry.replace(/^[\u3041-\u30ff]+/, '')]));
}

/** Writes a word of kana; what is no kana is dropped. Long vowels are `ー`, as pronunciations have them. */
export function kanaPhonemes(kana: string, morae: Morae): string {
  const hiragana = kana.replace(/[\u30a1-\u30f6]/g, (letter) => String.fromCharCode(letter.charCodeAt(0) - 0x60));
  const sounds: string[] = [];
  for (let at = 0; at < hiragana.length;) {
    const two = morae.has(hiragana.slice(at, at + 2)) && at + 1 < hiragana.length ? 2 : 1;
    const mora = hiragana.slice(at, at + two);
    sounds.push(mora === 'ん' ? 'ん' : (morae.get(mora) ?? ''));
    at += two;
  }
  return sounds
    .map((sound, i) => (sound === 'ん' ? (NASALS.find(([before]) => before.test(sounds[i + 1] ?? ''))?.[1] ?? 'ɴ') : sound))
    .join('');
}
