"""Word errors, and what pocketsphinx (Debian pocketsphinx-en-us, python3-pocketsphinx) hears."""

import re
import jiwer

SPHINX = '/usr/share/pocketsphinx/model/en-us/'


def plain(text):
    """Words as they are compared: no case, no punctuation, American spelling of the few that the texts have."""
    text = text.lower().replace('-', ' ').replace('mr.', 'mister').replace('favourite', 'favorite').replace('colour', 'color')
    return ' '.join(re.sub(r"[^a-z0-9' ]+", ' ', re.sub(r'\(\d\)', '', text)).split())


def errors(reference, heard):
    """-> substitutions, deletions and insertions together, and how many words the reference has"""
    reference, heard = plain(reference), plain(heard)
    if not reference:
        return len(heard.split()), 0
    found = jiwer.process_words(reference, heard)
    return found.substitutions + found.deletions + found.insertions, len(reference.split())


def sphinx():
    """-> a function that tells what pocketsphinx hears in 16 kHz samples (int16)"""
    from pocketsphinx import Decoder

    config = Decoder.default_config()
    for key, value in (('-hmm', 'en-us'), ('-lm', 'en-us.lm.bin'), ('-dict', 'cmudict-en-us.dict')):
        config.set_string(key, SPHINX + value)
    config.set_string('-logfn', '/dev/null')
    decoder = Decoder(config)

    def hear(samples):
        decoder.start_utt()
        decoder.process_raw(samples.tobytes(), False, True)
        decoder.end_utt()
        return decoder.hyp().hypstr if decoder.hyp() else ''

    return hear
