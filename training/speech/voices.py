"""The 19 voices of data/voices.json: which teacher (t), and how it is bent.
hts:   festival cmu_us_slt_arctic_hts with an edited .htsvoice (alpha = all-pass constant, i.e. formants;
       f0 = factor on log-F0 mean; range = factor on log-F0 excursions; rate = speech rate)
flite: f0 mean/stddev in Hz and duration stretch set natively; warp = sampling-rate ratio, which moves formants
       (F0 and durations are pre-compensated so the final values are the ones written there;
       the rms voice ignores f0, its F0 is 102 Hz * warp)."""

import json
import paths

VOICES = json.load(open(paths.HERE + "/data/voices.json"))
NAMES = list(VOICES)
# Prosody styles that the export moves away from another voice's by this share of their difference, because the predictor leaves the two
# too near to each other (evaluate.py): the least that makes the pair separable.
APART = {"oni": ("aus-female-3", 0.15)}
