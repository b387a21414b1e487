#!/bin/bash
# Runs the whole recipe; every step is resumable (finished voices, packs and checkpoints are kept).
#   PARLEY_WORK  work folder (work)   PARLEY_DATA  the data folder (../../../shared/data)   PY  python with torch, numpy, scipy, matplotlib
#   DEVICE       cpu | cuda           N  utterances per voice (316: together the 19 voices read all 6,000 sentences once)
#   DEC_S PRO_S  seconds of training per phase            FLAGS  more flags of train_decoder.py (--bf16 where the CPU has AVX512-BF16/AMX)
# On a GPU: DEVICE=cuda N=1500 DEC_S=14400 PRO_S=3600 BATCH=32 FRAMES=100 FLAGS=--bf16 ./run_all.sh
set -e
cd "$(dirname "$0")"
export PARLEY_WORK=${PARLEY_WORK:-$PWD/work} PARLEY_DATA=${PARLEY_DATA:-../../../shared/data}
PY=${PY:-python3}; DEVICE=${DEVICE:-cpu}; N=${N:-316}; W=$PARLEY_WORK
mkdir -p $W/data $W/ckpt $W/out
gcc -O2 -o $W/flite_teacher flite_teacher.c -lflite_cmu_us_slt -lflite_cmu_us_rms -lflite_cmu_us_awb -lflite_cmu_us_kal16 -lflite_usenglish -lflite_cmulex -lflite -lm
gcc -O3 -march=native -ffast-math -shared -fPIC -o $W/libfastops.so fastops.c -lm || true   # optional, CPU training only
$PY make_config.py $W/config.json
[ -f $W/data/texts.tsv ] || $PY texts.py
[ -f $W/data/phones.tsv ] || node phonemize.mjs $W/data/texts.tsv $W/data/phones.tsv
$PY synth.py $N
$PY prepare.py
TRAIN="$PY train_decoder.py --device $DEVICE --batch ${BATCH:-4} --frames ${FRAMES:-72} $FLAGS"
$TRAIN ${DEC_S:-3600} --lr 1e-3 --lr_end 2e-4
$PY train_prosody.py ${PRO_S:-900} --device $DEVICE
$TRAIN ${DEC_S:-3600} --lr 7e-4 --lr_end 1e-5 --pred 0.8 --from_ema
$PY export.py
$PY evaluate.py teacher
$PY evaluate.py $W/out
