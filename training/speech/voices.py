"""The 19 voices: which teacher, and how it is bent.
hts:   festival cmu_us_slt_arctic_hts with an edited .htsvoice (alpha = all-pass constant, i.e. formants;
       f0 = factor on log-F0 mean; range = factor on log-F0 excursions; rate = speech rate)
flite: f0 mean/stddev in Hz and duration stretch set natively; warp = sampling-rate ratio, which moves formants
       (F0 and durations are pre-compensated so the final values are the ones written here;
       the rms voice ignores f0, its F0 is 102 Hz * warp)."""

H, F = "hts", "flite"
VOICES = {
    "aus-female-1": dict(t=H, alpha=0.45, f0=1.00, range=1.0, rate=1.00),
    "aus-female-2": dict(t=F, v="slt", warp=1.00, f0=178, sd=22, stretch=1.00),
    "aus-female-3": dict(t=H, alpha=0.42, f0=1.22, range=1.2, rate=1.10),
    "aus-female-4": dict(t=H, alpha=0.475, f0=0.86, range=0.9, rate=0.95),
    "aus-female-5": dict(t=F, v="slt", warp=0.94, f0=156, sd=20, stretch=1.08),
    "aus-female-6": dict(t=F, v="awb", warp=1.17, f0=205, sd=28, stretch=1.00),
    "aus-male-1": dict(t=F, v="rms", warp=1.00, f0=98, sd=15, stretch=0.95),
    "aus-male-2": dict(t=F, v="awb", warp=1.00, f0=132, sd=18, stretch=1.00),
    "aus-male-3": dict(t=H, alpha=0.515, f0=0.62, range=1.0, rate=1.00),
    "aus-male-4": dict(t=F, v="rms", warp=0.90, f0=92, sd=10, stretch=1.05),
    "aus-male-5": dict(t=F, v="awb", warp=1.05, f0=152, sd=22, stretch=0.88),
    "aus-male-6": dict(t=F, v="slt", warp=0.86, f0=116, sd=15, stretch=1.00),
    "aus-male-7": dict(t=H, alpha=0.50, f0=0.72, range=1.2, rate=1.12),
    "charter": dict(t=F, v="rms", warp=1.08, f0=110, sd=24, stretch=1.05),
    "gaius": dict(t=F, v="awb", warp=0.92, f0=98, sd=14, stretch=1.12),
    "_gantry": dict(t=F, v="kal16", warp=1.00, f0=105, sd=5, stretch=1.05),
    "nona": dict(t=H, alpha=0.455, f0=0.94, range=0.7, rate=0.86),
    "oni": dict(t=F, v="slt", warp=1.13, f0=240, sd=34, stretch=0.92),
    "vulcan": dict(t=H, alpha=0.535, f0=0.50, range=0.8, rate=0.90),
}
NAMES = list(VOICES)
# Prosody styles that the export moves away from another voice's by this share of their difference, because the predictor leaves the two
# too near to each other (measure.py): the least that makes the pair separable.
APART = {"oni": ("aus-female-3", 0.15)}
