#!/bin/sh
# Writes test/fixtures/audio-formats: one spoken clip in every container, codec, rate and depth that uploads come in. Needs ffmpeg with libgsm, libmp3lame,
# libopus, libvorbis. ffmpeg has no encoder of HE-AAC under a free licence: those two files are what syom's `encode_write_m4a` makes at 44.1 kHz and 24 kbit/s
# (`with_he`, `with_he_v2`), copied by `ffmpeg -c copy`, and stay as they are.
set -eu
cd "$(dirname "$0")/../fixtures"
out=audio-formats
clip=parley-transcribe/clip.wav
mkdir -p $out
find $out -type f ! -name 'he-aac*' -delete
# make NAME SECONDS ARGUMENTS ...
make() {
  name=$1; seconds=$2; shift 2
  ffmpeg -y -loglevel error -i $clip -t "$seconds" -map_metadata -1 -fflags +bitexact -flags:a +bitexact "$@" "$out/$name"
}
make mp3-44100-stereo.mp3 2.1 -ar 44100 -ac 2 -b:a 48k
make mp3-16000-mono.mp3 2.1 -ar 16000 -b:a 24k
make mp3-22050-vbr.mp3 2.1 -ar 22050 -q:a 7
make mp3-8000-no-header.mp3 2.1 -ar 8000 -b:a 16k -write_xing 0 -id3v2_version 0
make mp3-48000-vbr-no-header.mp3 2.1 -ar 48000 -q:a 9 -write_xing 0
make mp2-16000.mp2 2.1 -ar 16000 -b:a 32k -f mp2
make m4a-44100-stereo.m4a 2.1 -c:a aac -ar 44100 -ac 2 -b:a 48k
make m4a-16000-mono.m4a 2.1 -c:a aac -ar 16000 -b:a 24k
make m4a-fast-start.m4a 2.1 -c:a aac -ar 16000 -b:a 24k -movflags +faststart
make m4a-7.1.m4a 0.5 -c:a aac -ac 8 -b:a 96k
make mp4-fragments.mp4 2.1 -c:a aac -ar 48000 -b:a 32k -movflags +frag_keyframe+empty_moov+default_base_moof -frag_duration 500000
make alac-16000.m4a 0.5 -c:a alac -ar 16000
make alac-44100-24.m4a 0.2 -c:a alac -ar 44100 -sample_fmt s32p
make opus.mp4 2.1 -c:a libopus -b:a 16k -strict -2
make aac-22050.aac 2.1 -c:a aac -ar 22050 -b:a 24k -f adts
make aac-48000-stereo.aac 2.1 -c:a aac -ar 48000 -ac 2 -b:a 32k -f adts
make webm-opus.webm 2.1 -c:a libopus -b:a 16k
make webm-opus-stereo.webm 2.1 -c:a libopus -ac 2 -b:a 24k
make webm-live.webm 2.1 -c:a libopus -b:a 16k -live 1
make webm-vorbis.webm 2.1 -c:a libvorbis -ar 16000 -q:a 0
make mkv-aac.mkv 2.1 -c:a aac -ar 16000 -b:a 24k
make mkv-flac.mkv 0.5 -c:a flac -ar 16000
make mkv-mp3.mkv 2.1 -c:a libmp3lame -ar 16000 -b:a 24k
make ogg-opus.opus 2.1 -c:a libopus -b:a 16k
make ogg-opus-60ms.ogg 2.1 -c:a libopus -frame_duration 60 -ac 2 -b:a 16k -application voip
make ogg-vorbis-44100.ogg 2.1 -c:a libvorbis -ar 44100 -ac 2 -q:a 0
make ogg-vorbis-8000.ogg 2.1 -c:a libvorbis -ar 8000 -q:a 0
make ogg-flac.oga 0.5 -c:a flac -ar 16000 -f ogg
make flac-16000-16.flac 2.1 -c:a flac -ar 16000 -compression_level 12
make flac-48000-24-stereo.flac 0.1 -c:a flac -ar 48000 -ac 2 -sample_fmt s32 -bits_per_raw_sample 24
make flac-8000-5.1.flac 0.2 -c:a flac -ar 8000 -ac 6
make aiff-16000-16.aiff 0.5 -ar 16000
make aiff-44100-24-stereo.aiff 0.1 -ar 44100 -ac 2 -c:a pcm_s24be
make aifc-8000-little.aifc 0.5 -ar 8000 -c:a pcm_s16le -f aiff
make aifc-22050-float.aifc 0.1 -ar 22050 -c:a pcm_f32be -f aiff
make caf-16000-16.caf 0.5 -ar 16000 -c:a pcm_s16le
make caf-alac.caf 0.5 -ar 16000 -c:a alac
make caf-8000-8.caf 0.5 -ar 8000 -c:a pcm_s8
make caf-8000-alaw.caf 0.5 -ar 8000 -c:a pcm_alaw
make caf-8000-mulaw-stereo.caf 0.5 -ar 8000 -ac 2 -c:a pcm_mulaw
make aifc-22050-ima4-stereo.aifc 0.5 -ar 22050 -ac 2 -c:a adpcm_ima_qt -f aiff
make aifc-8000-mulaw.aifc 0.5 -ar 8000 -c:a pcm_mulaw -f aiff
make wav-8000-alaw.wav 2.1 -ar 8000 -c:a pcm_alaw
make wav-8000-mulaw-stereo.wav 0.5 -ar 8000 -ac 2 -c:a pcm_mulaw
make wav-48000-one-silent.wav 0.2 -af 'pan=stereo|c0=c0|c1=0*c0' -ar 48000
make wav-16000-opposite.wav 0.2 -af 'pan=stereo|c0=c0|c1=-1*c0'
make flac-16000-opposite.flac 0.2 -af 'pan=stereo|c0=c0|c1=-1*c0' -c:a flac
make ogg-opus-opposite.opus 2.1 -af 'pan=stereo|c0=c0|c1=-1*c0' -c:a libopus -b:a 24k
make wav-16000-rf64.wav 0.2 -ar 16000 -rf64 always
make ogg-vorbis-5.1.ogg 2.1 -c:a libvorbis -ar 48000 -ac 6 -q:a 0
make mov-aac-44100.mov 2.1 -c:a aac -ar 44100 -b:a 32k
make mov-44100-24-stereo.mov 0.1 -ar 44100 -ac 2 -c:a pcm_s24be
make mov-16000-float.mov 0.2 -ar 16000 -c:a pcm_f32be
make mov-8000-alaw.mov 0.5 -ar 8000 -c:a pcm_alaw
make mov-8000-8.mov 0.5 -ar 8000 -c:a pcm_s8
make mp4-16000-pcm.mp4 0.5 -ar 16000 -c:a pcm_s16le
make mp4-96000-pcm-24-stereo.mp4 0.05 -ar 96000 -ac 2 -c:a pcm_s24be
make mp4-8000-float-fragments.mp4 0.5 -ar 8000 -c:a pcm_f32le -movflags +frag_keyframe+empty_moov -frag_duration 100000
# What telephone systems and recorders keep.
make wav-8000-adpcm-ms.wav 2.1 -ar 8000 -c:a adpcm_ms
make wav-22050-adpcm-ima-stereo.wav 0.5 -ar 22050 -ac 2 -c:a adpcm_ima_wav
make wav-8000-gsm.wav 2.1 -ar 8000 -c:a libgsm_ms
make wav-22050-mp3.wav 2.1 -ar 22050 -c:a libmp3lame -b:a 24k
make au-8000-mulaw.au 0.5 -ar 8000 -c:a pcm_mulaw
make au-44100-24-stereo.au 0.1 -ar 44100 -ac 2 -c:a pcm_s24be
make au-16000-float.au 0.2 -ar 16000 -c:a pcm_f32be
make w64-48000-stereo.w64 0.1 -ar 48000 -ac 2 -c:a pcm_s16le
make w64-8000-adpcm-ms.w64 0.5 -ar 8000 -c:a adpcm_ms
make flv-aac.flv 2.1 -c:a aac -ar 44100 -ac 2 -b:a 32k
make flv-mp3.flv 2.1 -c:a libmp3lame -ar 22050 -b:a 24k
make flv-8000-mulaw.flv 0.5 -ar 8000 -c:a pcm_mulaw
# More than two channels: every voice in each of them, and in the middle one alone, as in films.
make m4a-5.1.m4a 1 -c:a aac -ar 48000 -ac 6 -b:a 128k
make opus-5.1.opus 2.1 -c:a libopus -ac 6 -mapping_family 1 -b:a 48k
make opus-5.1-60ms.mp4 1 -c:a libopus -ac 6 -mapping_family 1 -frame_duration 60 -b:a 48k -strict -2
centre='pan=5.1|c0=0*c0|c1=0*c0|c2=c0|c3=0*c0|c4=0*c0|c5=0*c0'
make m4a-5.1-centre.m4a 2.1 -af "$centre" -c:a aac -ar 48000 -b:a 48k
# A cover in the tags, and films.
picture() {
  name=$1; shift
  ffmpeg -y -loglevel error -i $clip -f lavfi -i color=red:s=32x32:r=5:d=2 -map 0:a -map 1:v -map_metadata -1 -fflags +bitexact -flags +bitexact "$@" "$out/$name"
}
picture mp3-cover.mp3 -frames:v 1 -c:v mjpeg -disposition:v attached_pic -c:a libmp3lame -b:a 24k
picture flac-cover.flac -frames:v 1 -c:v mjpeg -disposition:v attached_pic -c:a flac
picture film.mp4 -c:v mpeg4 -c:a aac -b:a 32k
picture film.webm -c:v libvpx -c:a libopus -b:a 16k
picture film.flv -c:v flv -c:a aac -ar 22050 -b:a 24k
# What the recorder of Open WebUI posts: webm of the browser, made mp3.
ffmpeg -y -loglevel error -i $out/webm-live.webm -map_metadata -1 -fflags +bitexact -c:a libmp3lame -b:a 32k $out/recorder.mp3
# Two streams, one after the other.
cat $out/ogg-opus.opus $out/ogg-opus.opus > $out/chained.ogg
cat $out/mp3-16000-mono.mp3 $out/mp3-16000-mono.mp3 > $out/joined.mp3
du -cb $out/* | tail -1
