/** Which files count as recordings. */

/** Endings of their names, for systems that do not know the type of each. */
const ENDINGS = 'aac aif aiff caf flac m4a mka mkv mov mp3 mp4 oga ogg opus wav weba webm'.split(' ');

/** What a file picker offers. */
export const SOUND_FILES = ['audio/*', 'video/*', ...ENDINGS.map((ending) => `.${ending}`)].join();

/** Whether a file is a recording by its type, or by its name where it has no type. */
export const isSoundFile = ({ type, name }: File): boolean =>
  type === '' ? ENDINGS.includes(name.slice(name.lastIndexOf('.') + 1).toLowerCase()) : /^(audio|video)\//.test(type);
