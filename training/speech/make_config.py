#!/usr/bin/env python3
"""Writes config.json: Kokoro's keys and vocabulary (taken from the bundled model), our widths.  usage: make_config.py out.json"""

import json, os, sys

here = os.path.dirname(os.path.abspath(__file__))
vocab = json.load(open(here + "/../../models/parley-speech/config.json"))["vocab"]
cfg = dict(istftnet=dict(upsample_kernel_sizes=[8, 12],
                         upsample_rates=[4, 6],
                         gen_istft_hop_size=10,
                         gen_istft_n_fft=40,
                         resblock_dilation_sizes=[[1, 3, 5], [1, 3, 5], [1, 3, 5]],
                         resblock_kernel_sizes=[3, 7, 11],
                         upsample_initial_channel=128),
           dim_in=64,
           dropout=0.1,
           hidden_dim=128,
           max_conv_dim=128,
           max_dur=50,
           multispeaker=True,
           n_layer=3,
           n_mels=80,
           n_token=178,
           style_dim=64,
           text_encoder_kernel_size=5,
           decoder_dim=256,
           asr_res_dim=32,
           plbert=dict(hidden_size=128,
                       num_attention_heads=4,
                       intermediate_size=256,
                       max_position_embeddings=512,
                       num_hidden_layers=3,
                       dropout=0.1,
                       embedding_size=128),
           vocab=vocab)
json.dump(cfg, open(sys.argv[1], "w"), ensure_ascii=False, indent=1)
