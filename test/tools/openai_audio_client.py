"""Drives a speech and a transcription listener with the official Python client: openai_audio_client.py SPEECH_URL TRANSCRIPTION_URL CLIP [VOICE].
The URLs end in /v1; CLIP is a WAV file in which a person speaks English. Every field, value and error of both interfaces.
Prints what passed; fails on the first thing that is wrong."""

import base64
import io
import json
import pathlib
import re
import sys
import tempfile
import wave

import openai

SPEECH, TRANSCRIPTION, CLIP = sys.argv[1:4]
VOICE = sys.argv[4] if len(sys.argv) > 4 else "nona"
speaker, listener = (openai.OpenAI(base_url=url, api_key="none", max_retries=0) for url in (SPEECH, TRANSCRIPTION))
TEXT = "The watch was in the station."
GOOD = {"model": "tts-1", "input": TEXT, "voice": VOICE}
SEED = {"seed": 7}
BINARY = type(speaker.audio.speech.create(**GOOD))
STATUS = {400: openai.BadRequestError, 404: openai.NotFoundError, 413: openai.APIStatusError}


def refused(call, param, code, status=400, kind="invalid_request_error", named=True):
    """The error of the call: its class, status, type, code, param, request id, and whether its message names the field."""
    try:
        call()
    except openai.APIStatusError as error:
        found = (error.status_code, error.type, error.code, error.param)
        assert found == (status, kind, code, param), (found, error.message)
        assert isinstance(error, STATUS.get(status, openai.APIStatusError)), type(error)
        assert error.request_id and error.message, error
        assert error.body.keys() >= {"message", "type", "param", "code"}, error.body
        if param and named:
            assert param.split(".")[0] in error.message, error.message
        return error
    raise SystemExit(f"was accepted, not refused for {param} with {code}")


def say(more=None, **change):
    return speaker.audio.speech.create(**{**GOOD, **change}, extra_body={**SEED, **(more or {})})


def seconds(data):
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2), file.getparams()
        return file.getnframes() / file.getframerate()


def post(body, kind=object):
    return speaker.post("/audio/speech", body=body, cast_to=kind)


def without(*names):
    return {name: value for name, value in GOOD.items() if name not in names}


# ---------------------------------------------------------------------------------------------------------------- speech
FORMATS = {
    "mp3": ("audio/mpeg", b"\xff"), "opus": ("audio/ogg; codecs=opus", b"OggS"), "aac": ("audio/aac", b"\xff\xf1"),
    "flac": ("audio/flac", b"fLaC"), "wav": ("audio/wav", b"RIFF"), "pcm": ("audio/pcm", b""),
}  # fmt: skip
files = {}
for name, (kind, magic) in FORMATS.items():
    raw = speaker.audio.speech.with_raw_response.create(**GOOD, response_format=name, extra_body=SEED)
    files[name] = raw.content
    assert raw.headers["content-type"].startswith(kind) and files[name].startswith(magic), (name, raw.headers)
    assert int(raw.headers["content-length"]) == len(files[name]), raw.headers
    assert raw.headers["content-disposition"] == f'inline; filename="speech.{name}"' and raw.headers["x-speech-seed"] == "7", raw.headers
    assert raw.headers["x-request-id"], raw.headers
assert raw.headers["content-type"] == "audio/pcm; rate=24000", raw.headers
length = seconds(files["wav"])
assert 0.5 < length < 10 and len(files["pcm"]) == 48000 * length, length
assert speaker.audio.speech.create(**GOOD, extra_body=SEED).content == files["mp3"]  # the default
print("formats")

for name in FORMATS:
    # What stands at the beginning and only the end tells: sizes, sums, the first frame of MP3. At least as long as the shorter is a file then.
    with speaker.audio.speech.with_streaming_response.create(**GOOD, response_format=name, stream_format="audio", extra_body=SEED) as streamed:
        body = b"".join(streamed.iter_bytes())
        assert "content-length" not in streamed.headers and streamed.headers["x-speech-seed"] == "7", streamed.headers
    assert abs(len(body) - len(files[name])) < 1000 and body[600:] == files[name][600:], name
    events = [json.loads(line[6:]) for line in say(response_format=name, stream_format="sse").text.split("\n\n") if line]
    assert [event["type"] for event in events] == ["speech.audio.delta"] * (len(events) - 1) + ["speech.audio.done"], events
    usage = events[-1]["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0, usage
    assert b"".join(base64.b64decode(event["audio"]) for event in events[:-1]) == body, name
with speaker.audio.speech.with_streaming_response.create(**GOOD, response_format="wav", stream_format="audio", extra_body=SEED) as streamed:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "speech.wav")
        streamed.stream_to_file(path)
        header = path.read_bytes()[:44]
assert header[4:8] == header[40:44] == b"\xff" * 4, header
assert say({"stream": True}, response_format="pcm").content == say({"stream": False}, response_format="pcm").content == files["pcm"]
print("streams")

listed = speaker.get("/audio/voices", cast_to=object)["voices"]
names = [voice["id"] for voice in listed]
OPENAI = "alloy ash ballad coral echo fable onyx nova sage shimmer verse marin cedar".split()
assert set(OPENAI) <= set(names) and VOICE in names and all(voice["name"] == voice["id"] for voice in listed), names
own = [voice["id"] for voice in listed if "made_of" not in voice]
sounds = {name: say(voice=name, input="Hello.", response_format="pcm").content for name in [*OPENAI, *own[:3], VOICE]}
assert all(len(sound) > 4800 for sound in sounds.values()) and len({sounds[name] for name in OPENAI}) == len(OPENAI)
assert say(voice={"id": VOICE}, input="Hello.", response_format="pcm").content == sounds[VOICE]
first, second = own[:2]
blend = say(voice=f"{first}(2)+{second}(1)", input="Hello.", response_format="pcm").content
assert len(blend) > 4800 and blend not in (sounds[first], sounds[second])
assert len(say(voice=f"{VOICE}(2)+oni(1)", input="Hello.", response_format="pcm").content) > 4800
assert say(voice="alloy(0.5) + nova(0.5)", input="Hello.", response_format="pcm").content not in (sounds["alloy"], sounds["nova"])
print("voices")

for speed in (0.25, 0.5, 1.0, 2.0, 4.0):
    ratio = seconds(say(response_format="wav", speed=speed).content) / length
    assert 0.4 / speed < ratio < 2.2 / speed and (speed == 1) == (ratio == 1), (speed, ratio)
for rate in (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000):
    raw = speaker.audio.speech.with_raw_response.create(**GOOD, response_format="pcm", extra_body={**SEED, "sample_rate": rate})
    assert raw.headers["content-type"] == f"audio/pcm; rate={rate}", raw.headers
    assert abs(len(raw.content) / 2 / rate - length) < 0.001, (rate, len(raw.content))
    assert abs(seconds(say({"sample_rate": rate}, response_format="wav").content) - length) < 0.001, rate
for model in ("tts-1", "tts-1-hd", "gpt-4o-mini-tts"):
    assert say(model=model, response_format="pcm", instructions="Speak kindly. " * 292).content == files["pcm"], model
nothing = dict.fromkeys(("response_format", "seed", "speed", "instructions", "stream_format", "sample_rate", "stream"))
assert post({**GOOD, **nothing, **SEED}, BINARY).content == files["mp3"]
random = [speaker.audio.speech.with_raw_response.create(**GOOD).headers["x-speech-seed"] for _ in range(2)]
assert random[0] != random[1] and all(re.fullmatch(r"-?\d+", seed) for seed in random), random
assert say({"seed": 8}, response_format="pcm").content != files["pcm"]
whole = seconds(say(response_format="wav", input="One. " * 12 + "And the last sentence of them all is here.").content)
assert whole > 2 * length, whole
earlier = post({"text": TEXT, "voice_ref": f"{VOICE}.wav", **SEED}, BINARY)
assert earlier.content == files["wav"] and earlier.response.headers["deprecation"] == "true", earlier.response.headers
print("speech fields")

for change, param, code in [
    ({"input": ""}, "input", "invalid_value"), ({"input": " \n "}, "input", "invalid_value"), ({"input": "a" * 4097}, "input", "invalid_value"),
    ({"input": 5}, "input", "invalid_type"), ({"voice": "nobody"}, "voice", "invalid_value"), ({"voice": f"{VOICE}+nobody"}, "voice", "invalid_value"),
    ({"voice": f"{VOICE}+{VOICE}"}, "voice", "invalid_value"), ({"voice": f"{VOICE}(0)"}, "voice", "invalid_value"),
    ({"voice": VOICE.upper()}, "voice", "invalid_value"), ({"voice": 5}, "voice", "invalid_type"), ({"voice": {"name": VOICE}}, "voice.id", "missing_required_parameter"),
    ({"response_format": "midi"}, "response_format", "invalid_value"), ({"response_format": 1}, "response_format", "invalid_type"),
    ({"speed": 0.24}, "speed", "invalid_value"), ({"speed": 4.01}, "speed", "invalid_value"), ({"speed": "fast"}, "speed", "invalid_type"),
    ({"instructions": "a" * 4097}, "instructions", "invalid_value"), ({"instructions": 1}, "instructions", "invalid_type"),
    ({"stream_format": "ndjson"}, "stream_format", "invalid_value"), ({"stream": "yes"}, "stream", "invalid_type"),
    ({"sample_rate": 7999}, "sample_rate", "invalid_value"), ({"sample_rate": 96000}, "sample_rate", "invalid_value"),
    ({"sample_rate": 12345}, "sample_rate", "invalid_value"), ({"sample_rate": "high"}, "sample_rate", "invalid_type"),
    ({"seed": 0.5}, "seed", "invalid_value"), ({"seed": "x"}, "seed", "invalid_type"),
]:  # fmt: skip
    refused(lambda: post({**GOOD, **change}), param, code)
assert "spoken" in refused(lambda: say(input="... !"), "input", "invalid_value", named=False).message
assert VOICE in refused(lambda: say(voice="nobody"), "voice", "invalid_value").message
for name in ("model", "input", "voice"):
    refused(lambda: post(without(name)), name, "missing_required_parameter")
    refused(lambda: post({**GOOD, name: None}), name, "missing_required_parameter")
refused(lambda: say(model="whisper-1"), "model", "model_not_found", 404)
refused(lambda: post({**GOOD, "text": TEXT}), None, "invalid_value")
for reference in ("nobody.wav", f"{VOICE}.mp3", f"../{VOICE}.wav", VOICE, f"a\\{VOICE}.wav"):
    refused(lambda: post({"text": TEXT, "voice_ref": reference}), "voice_ref", "invalid_value")
refused(lambda: post({"text": TEXT}), "voice_ref", "missing_required_parameter")
refused(lambda: post({"voice_ref": f"{VOICE}.wav"}), "text", "missing_required_parameter")
refused(lambda: speaker.post("/audio/speeches", body={}, cast_to=object), None, "unknown_url", 404)
refused(lambda: speaker.get("/audio/speech", cast_to=object), None, "method_not_allowed", 405)
refused(lambda: speaker.post("/audio/speech", body=GOOD, cast_to=object, options={"headers": {"content-type": "text/plain"}}), None, "unsupported_media_type", 415)
refused(lambda: speaker.post("/audio/speech", content=b"{", cast_to=object, options={"headers": {"content-type": "application/json"}}), None, "invalid_json")
print("speech errors")

# --------------------------------------------------------------------------------------------------------- transcription
clip = pathlib.Path(CLIP).read_bytes()
clip_seconds = seconds(clip)
HEAR = {"file": ("speech.bin", clip), "model": "whisper-1"}


def hear(**change):
    return listener.audio.transcriptions.create(**{**HEAR, **change})


plain = hear()
assert isinstance(plain, openai.types.audio.Transcription) and re.search(r"\w+ \w+", plain.text), plain
assert plain.text == plain.text.strip() and plain.logprobs is None, plain
assert plain.usage.type == "duration" and 0 <= plain.usage.seconds - clip_seconds < 1, plain.usage
text = plain.text
assert hear(response_format="json").text == text and hear(response_format="text") == text + "\n"
CLOCK = r"\d\d:\d\d:\d\d{0}\d{{3}}"
srt, vtt = hear(response_format="srt"), hear(response_format="vtt")
assert re.match(r"1\n" + CLOCK.format(",") + " --> " + CLOCK.format(",") + r"\n\S", srt), srt
assert re.match(r"WEBVTT\n\n" + CLOCK.format(r"\.") + " --> " + CLOCK.format(r"\.") + r"\n\S", vtt), vtt
for form, kind in (("json", "application/json"), ("text", "text/plain"), ("srt", "text/plain"), ("vtt", "text/vtt"), ("verbose_json", "application/json")):
    raw = listener.audio.transcriptions.with_raw_response.create(**HEAR, response_format=form)
    assert raw.headers["content-type"].startswith(kind) and raw.headers["x-request-id"], (form, raw.headers)
print("transcript formats")

timed = hear(response_format="verbose_json", language="en")
assert isinstance(timed, openai.types.audio.TranscriptionVerbose) and timed.language == "english", timed
assert timed.to_dict()["task"] == "transcribe" and abs(timed.duration - clip_seconds) < 0.01 and timed.text and timed.words is None, timed
assert timed.usage.type == "duration" and timed.usage.seconds >= timed.duration, timed.usage
TEN = {"id", "seek", "start", "end", "text", "tokens", "temperature", "avg_logprob", "compression_ratio", "no_speech_prob"}
at = 0
for index, segment in enumerate(timed.segments):
    assert set(segment.to_dict()) == TEN and segment.id == index, segment
    assert at <= segment.start < segment.end <= clip_seconds + 0.05 and segment.avg_logprob <= 0 <= segment.no_speech_prob <= 1, segment
    assert segment.compression_ratio > 0 and all(isinstance(token, int) for token in segment.tokens), segment
    at = segment.end
for asked, has_segments, has_words in ((["segment"], True, False), (["word"], False, True), (["word", "segment"], True, True)):
    found = hear(response_format="verbose_json", timestamp_granularities=asked)
    assert (found.segments is not None, found.words is not None) == (has_segments, has_words), asked
    if has_words:
        squeezed = re.sub(r"\s", "", found.text)
        assert re.sub(r"\s", "", "".join(word.word for word in found.words)) == squeezed, found
        starts = [word.start for word in found.words]
        assert starts == sorted(starts) and all(0 <= word.start <= word.end <= clip_seconds + 0.05 for word in found.words), found.words
assert hear(timestamp_granularities=["word"]).text == text  # ignored beside json
print("times")

scored = hear(include=["logprobs"])
assert scored.text == text and scored.logprobs, scored
assert all(one.logprob <= 0 and bytes(map(int, one.bytes)).decode(errors="replace") == one.token for one in scored.logprobs), scored.logprobs
assert "".join(one.token for one in scored.logprobs).strip() == text, scored.logprobs
for change in ({"language": "en"}, {"language": "en-US"}, {"language": "English"}, {"temperature": 0}, {"prompt": ""}, {"chunking_strategy": "auto"}):
    assert hear(**change).text == (hear(language="en").text if "language" in change else text), change
for change in ({"temperature": 1.0}, {"temperature": 0.3}, {"prompt": "Watches, clocks."}, {"chunking_strategy": {"type": "server_vad"}}):
    assert isinstance(hear(**change).text, str), change
loose = {"type": "server_vad", "threshold": 0.3, "prefix_padding_ms": 400, "silence_duration_ms": 1000}
assert re.search(r"\w", hear(chunking_strategy=loose).text)
assert hear(chunking_strategy={"type": "server_vad", "threshold": 1}).text == ""
for extra in ({"vad_filter": "false"}, {"vad_filter": "true"}, {"stream": "false"}, {"stream": "0"}, {"unknown": "x"}):
    assert re.search(r"\w", hear(extra_body=extra).text), extra
for hints in ({"keywords": ["watch", "station"]}, {"languages": ["en", "de"]}):
    raw = listener.audio.transcriptions.with_raw_response.create(**HEAR, **hints)
    assert raw.parse().text == text and f"'{next(iter(hints))}' has no effect" in raw.headers["x-parley-warning"], raw.headers
silence = io.BytesIO()
with wave.open(silence, "wb") as file:
    file.setnchannels(1), file.setsampwidth(2), file.setframerate(16000), file.writeframes(bytes(64000))
for form, empty in (("json", ""), ("verbose_json", ""), ("text", "\n"), ("srt", ""), ("vtt", "WEBVTT\n\n")):
    heard = hear(file=("silence.wav", silence.getvalue()), response_format=form)
    assert (heard if isinstance(heard, str) else heard.text) == empty, (form, heard)
for kind in FORMATS.keys() - {"pcm"}:
    assert re.search(r"\w+ \w+", hear(file=("speech.txt", files[kind])).text), kind
print("transcription fields")

events = list(hear(stream=True, include=["logprobs"]))
deltas = [event for event in events if event.type == "transcript.text.delta"]
assert [event.type for event in events] == ["transcript.text.delta"] * len(deltas) + ["transcript.text.done"] and deltas, events
assert "".join(event.delta for event in deltas) == events[-1].text == text, events
assert [one.token for event in deltas for one in event.logprobs] == [one.token for one in events[-1].logprobs], events
usage = events[-1].usage
assert usage.type == "tokens" and usage.total_tokens == usage.input_tokens + usage.output_tokens and usage.input_token_details.audio_tokens > 0, usage
events = list(hear(stream=True, timestamp_granularities=["segment"]))
spans = [event for event in events if event.type == "transcript.text.segment"]
assert all("speaker" not in span.to_dict() for span in spans)  # only diarization has any
assert spans and all(isinstance(span.id, str) and 0 <= span.start < span.end <= clip_seconds + 0.05 for span in spans), spans
assert "".join(event.delta for event in events if event.type == "transcript.text.delta") == events[-1].text, events
with listener.audio.transcriptions.with_streaming_response.create(**HEAR, stream=True, response_format="text") as streamed:
    frames = streamed.read().decode().split("\n\n")
assert streamed.headers["content-type"].startswith("text/event-stream") and frames[-2:] == ["data: [DONE]", ""], frames
assert list(hear(stream=True, file=("silence.wav", silence.getvalue())))[-1].text == ""
print("transcription streams")

english = None
try:
    english = listener.audio.translations.create(**HEAR)
except openai.BadRequestError as error:
    assert (error.code, error.param, error.type) == ("unsupported_value", "model", "invalid_request_error"), error
if english is not None:
    assert re.search(r"\w+ \w+", english.text), english
    for form in ("text", "srt", "vtt"):
        assert re.search(r"\w+ \w+", listener.audio.translations.create(**HEAR, response_format=form, temperature=0, prompt="")), form
    verbose = listener.audio.translations.create(**HEAR, response_format="verbose_json")
    assert verbose.language == "english" and verbose.to_dict()["task"] == "translate" and verbose.segments and float(verbose.duration) > 0, verbose
refused(lambda: listener.audio.translations.create(file=HEAR["file"], model="tts-1"), "model", "model_not_found", 404)
refused(lambda: listener.audio.translations.create(**HEAR, response_format="xml"), "response_format", "invalid_value")
refused(lambda: listener.audio.translations.create(**HEAR, temperature=2), "temperature", "invalid_value")
print("translations")

VAD = "chunking_strategy"
for change, param, code in [
    ({"response_format": "diarized_json"}, "response_format", "unsupported_value"), ({"response_format": "xml"}, "response_format", "invalid_value"),
    *(({"response_format": form, "stream": True}, "stream", "unsupported_value") for form in ("srt", "vtt", "verbose_json")),
    ({"language": "klingon"}, "language", "invalid_value"), ({"temperature": 1.1}, "temperature", "invalid_value"),
    ({"temperature": -0.1}, "temperature", "invalid_value"), ({"timestamp_granularities": ["letter"]}, "timestamp_granularities", "invalid_value"),
    ({"include": ["words"]}, "include", "invalid_value"), ({"include": ["logprobs"], "response_format": "srt"}, "include", "unsupported_value"),
    ({"known_speaker_names": ["Ann"]}, "known_speaker_names", "unsupported_parameter"),
    ({"known_speaker_references": ["data:"]}, "known_speaker_references", "unsupported_parameter"),
    ({VAD: "never"}, VAD, "invalid_value"), ({VAD: {"type": "other"}}, VAD, "invalid_value"),
    ({VAD: {"type": "server_vad", "threshold": 1.5}}, f"{VAD}.threshold", "invalid_value"),
    ({VAD: {"type": "server_vad", "silence_duration_ms": -1}}, f"{VAD}.silence_duration_ms", "invalid_value"),
    ({VAD: {"type": "server_vad", "prefix_padding_ms": 0.5}}, f"{VAD}.prefix_padding_ms", "invalid_value"),
    ({"file": ("speech.mp3", b"hello")}, "file", "unsupported_audio"), ({"file": ("speech.mp3", b"")}, "file", "audio_too_short"),
    ({"file": ("speech.wav", clip[:44])}, "file", "audio_too_short"), ({"extra_body": {"stream": "maybe"}}, "stream", "invalid_value"),
    ({"extra_body": {"vad_filter": "maybe"}}, "vad_filter", "invalid_value"), ({"extra_body": {"task": "translate"}}, "task", "unsupported_parameter"),
    ({"extra_body": {"temperature": "hot"}}, "temperature", "invalid_value"),
]:  # fmt: skip
    refused(lambda: hear(**change), param, code)
refused(lambda: hear(model="tts-1"), "model", "model_not_found", 404)
refused(lambda: hear(file=("long.wav", bytes((25 << 20) + 1))), "file", "request_too_large", 413)
PATH, FORM = "/audio/transcriptions", {"headers": {"content-type": "multipart/form-data"}}
for body, uploads, param, code in [
    ({"model": "whisper-1"}, [("other", clip)], "file", "missing_required_parameter"),
    ({"model": "whisper-1", "file": "text"}, [("other", clip)], "file", "invalid_type"),
    ({}, [("file", clip)], "model", "missing_required_parameter"),
]:
    refused(lambda: listener.post(PATH, body=body, files=uploads, options=FORM, cast_to=object), param, code)
refused(lambda: listener.post(PATH, body={"model": "whisper-1"}, cast_to=object), None, "unsupported_media_type", 415)
refused(lambda: listener.get(PATH, cast_to=object), None, "method_not_allowed", 405)
refused(lambda: listener.post("/audio/transcription", body={}, cast_to=object), None, "unknown_url", 404)
print("transcription errors")
