/* Speech and phones by flite, many sentences in one process: reads "wav<TAB>voice<TAB>f0 mean<TAB>f0 deviation<TAB>stretch<TAB>text" lines
 * (voice: slt, rms, awb, kal16, or "none" for the phones alone; f0 0 leaves the voice's own) and prints the phones of each.
 * gcc -O2 -o flite_many flite_many.c -lflite_cmu_us_slt -lflite_cmu_us_rms -lflite_cmu_us_awb -lflite_cmu_us_kal16 -lflite_cmu_us_kal \
 *     -lflite_usenglish -lflite_cmulex -lflite -lm */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flite/flite.h>

cst_voice *register_cmu_us_slt(const char *), *register_cmu_us_rms(const char *), *register_cmu_us_awb(const char *);
cst_voice *register_cmu_us_kal16(const char *), *register_cmu_us_kal(const char *);

static cst_utterance *no_wave(cst_utterance *u) { return u; }

int main(void) {
  static char line[8192];
  const char *name[] = {"slt", "rms", "awb", "kal16", "none"};
  cst_voice *voice[5];
  float mean[5], sd[5];
  flite_init();
  voice[0] = register_cmu_us_slt(NULL);
  voice[1] = register_cmu_us_rms(NULL);
  voice[2] = register_cmu_us_awb(NULL);
  voice[3] = register_cmu_us_kal16(NULL);
  voice[4] = register_cmu_us_kal(NULL);
  for (int i = 0; i < 5; i++) {
    mean[i] = get_param_float(voice[i]->features, "int_f0_target_mean", 100);
    sd[i] = get_param_float(voice[i]->features, "int_f0_target_stddev", 12);
  }
  while (fgets(line, sizeof line, stdin)) {
    char *f[6] = {line};
    line[strcspn(line, "\n")] = 0;
    for (int i = 1; i < 6; i++) {
      f[i] = f[i - 1] ? strchr(f[i - 1], '\t') : NULL;
      if (f[i]) *f[i]++ = 0;
    }
    if (!f[5]) continue;
    int k = 0;
    while (k < 4 && strcmp(name[k], f[1])) k++;
    cst_voice *v = voice[k];
    if (k == 4) feat_set(v->features, "wave_synth_func", uttfunc_val(&no_wave));
    feat_set_float(v->features, "int_f0_target_mean", atof(f[2]) > 0 ? atof(f[2]) : mean[k]);
    feat_set_float(v->features, "int_f0_target_stddev", atof(f[3]) > 0 ? atof(f[3]) : sd[k]);
    feat_set_float(v->features, "duration_stretch", atof(f[4]) > 0 ? atof(f[4]) : 1);
    cst_utterance *u = flite_synth_text(f[5], v);
    if (u) {
      for (cst_item *s = relation_head(utt_relation(u, "Segment")); s; s = item_next(s)) printf("%s ", item_feat_string(s, "name"));
      if (k < 4) cst_wave_save_riff(utt_wave(u), f[0]);
      delete_utterance(u);
    }
    printf("\n");
    fflush(stdout);
  }
  return 0;
}
