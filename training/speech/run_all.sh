#!/bin/bash
# Runs the whole recipe; every step is resumable (finished voices, packs and checkpoints are kept).
#   PARLEY_WORK  work folder (work)   PARLEY_DATA  the data folder   PY  python with what the README names
#   DEVICE       cpu | cuda           N  utterances per voice (316: together the 19 voices read all 6,000 sentences once)
#   DEC_S PRO_S  seconds of training per phase            FLAGS  more flags of train_decoder.py (--bf16 where the CPU has AVX512-BF16/AMX)
# On a GPU: DEVICE=cuda N=1500 DEC_S=14400 PRO_S=3600 FLAGS='--bf16 --batch 32 --frames 100' ./run_all.sh
set -e
cd "$(dirname "$0")"
export PARLEY_WORK=${PARLEY_WORK:-$PWD/work}
PY=${PY:-python3}; DEVICE=${DEVICE:-cpu}; W=$PARLEY_WORK
mkdir -p $W/data
gcc -O2 -o $W/flite_teacher flite_teacher.c -lflite_cmu_us_slt -lflite_cmu_us_rms -lflite_cmu_us_awb -lflite_cmu_us_kal16 -lflite_usenglish -lflite_cmulex -lflite -lm
[ -f $W/data/texts.tsv ] || $PY texts.py
[ -f $W/data/phones.tsv ] || node phonemize.mjs $W/data/texts.tsv $W/data/phones.tsv
$PY synth.py ${N:-316}
$PY prepare.py
$PY train_decoder.py ${DEC_S:-3600} --device $DEVICE --lr 1e-3 --lr_end 2e-4 $FLAGS
$PY train_prosody.py ${PRO_S:-900} --device $DEVICE
$PY train_decoder.py ${DEC_S:-3600} --device $DEVICE --lr 7e-4 --lr_end 1e-5 --pred 0.8 --from_ema $FLAGS
$PY export.py
