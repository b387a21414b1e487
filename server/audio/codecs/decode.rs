//! Containers and codecs of uploads, for a WebAssembly instance that decodes one file: `open`, then `next` until it says END.
//! The file stays outside: its bytes are asked for as they are needed.
use std::cell::RefCell;
use std::io::{self, Read, Seek, SeekFrom};

use symphonia::core::codecs::CodecParameters;
use symphonia::core::codecs::audio::well_known::{CODEC_ID_MP3, CODEC_ID_OPUS};
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::packet::Packet;
use symphonia::core::units::Duration;

use crate::aac::AacDecoder;

/// What `open` and `next` answer.
const END: i32 = 0;
const SAMPLES: i32 = 1;
/// An Opus packet, which the host decodes.
const OPUS_PACKET: i32 = 2;
/// A packet that could not be decoded and was left out.
const DAMAGED: i32 = 3;
/// Another stream begins here with its own parameters; what comes next belongs to it.
const NEW_STREAM: i32 = 4;
const NO_FORMAT: i32 = -1;
const NO_TRACK: i32 = -2;
const NO_CODEC: i32 = -3;
/// The file is not what its beginning says.
const BROKEN: i32 = -4;
/// The file ends inside something.
const CUT: i32 = -5;
/// Errors of a container in a row: it goes on after one, and a reader that makes no way has to be stopped.
const MAX_ERRORS: u32 = 100;

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Copies bytes of the file from `at` on to `to`; how many there were, at most `length`.
    fn read(at: u32, to: *mut u8, length: u32) -> u32;
}

struct HostFile {
    at: u64,
    length: u64,
    seekable: bool,
}

impl Read for HostFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.length {
            return Ok(0);
        }
        // The host writes no more than it is told there is room for.
        let count = unsafe { read(self.at as u32, buffer.as_mut_ptr(), buffer.len() as u32) } as usize;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for HostFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(offset) => self.length.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

impl MediaSource for HostFile {
    fn is_seekable(&self) -> bool {
        self.seekable
    }
    fn byte_len(&self) -> Option<u64> {
        Some(self.length)
    }
}

/// Who decodes a track.
enum Decoder {
    Symphonia(Box<dyn AudioDecoder>),
    Aac(Box<AacDecoder>),
    /// libopus, with the host.
    Host,
}

struct Session {
    format: Box<dyn FormatReader>,
    track: u32,
    decoder: Decoder,
    rate: u32,
    is_mp3: bool,
    /// The Opus head.
    head: Vec<u8>,
    /// Of all channels, interleaved.
    samples: Vec<f32>,
    channels: u32,
    packet: Option<Packet>,
    /// Errors of the container since its last packet.
    errors: u32,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Finds out what the file of `length` bytes is; 0, or a negative number. `is_mpeg` is 1 for MP3: where it may seek, Symphonia guesses the length of
/// a file without a header from its first frames, and then takes what lies beyond for padding. It is 1 too for a file that is cut short: see missedEnd.
#[unsafe(no_mangle)]
pub extern "C" fn open(length: u32, is_mpeg: u32) -> i32 {
    let file = Box::new(HostFile { at: 0, length: u64::from(length), seekable: is_mpeg == 0 });
    let stream = MediaSourceStream::new(file, Default::default());
    let (format, meta) = (FormatOptions::default(), MetadataOptions::default());
    let format = match symphonia::default::get_probe().probe(&Hint::new(), stream, format, meta) {
        Ok(format) => format,
        Err(Error::IoError(_)) => return CUT,
        Err(Error::DecodeError(_)) => return BROKEN,
        Err(_) => return NO_FORMAT,
    };
    let (samples, head) = (Vec::new(), Vec::new());
    let mut session =
        Session { format, track: 0, decoder: Decoder::Host, rate: 0, is_mp3: false, head, samples, channels: 1, packet: None, errors: 0 };
    let status = session.choose();
    SESSION.set(Some(session));
    status
}

impl Session {
    /// Takes the first track with sound.
    fn choose(&mut self) -> i32 {
        let Some(track) = self.format.default_track(TrackType::Audio) else { return NO_TRACK };
        let Some(CodecParameters::Audio(parameters)) = &track.codec_params else { return NO_TRACK };
        self.track = track.id;
        self.rate = parameters.sample_rate.unwrap_or(0);
        self.is_mp3 = parameters.codec == CODEC_ID_MP3;
        if parameters.codec == CODEC_ID_OPUS {
            self.decoder = Decoder::Host;
            self.head = parameters.extra_data.as_deref().unwrap_or_default().to_vec();
            return END;
        }
        self.decoder = match symphonia::default::get_codecs().make_audio_decoder(parameters, &AudioDecoderOptions::default()) {
            Ok(decoder) => Decoder::Symphonia(decoder),
            // Of AAC, Symphonia has the plainest profile, in mono and stereo.
            Err(_) => match AacDecoder::open(parameters) {
                Some(decoder) => Decoder::Aac(Box::new(decoder)),
                None => return NO_CODEC,
            },
        };
        END
    }

    fn next(&mut self) -> i32 {
        let mut packet = match self.format.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => return END,
            Err(Error::ResetRequired) => {
                let status = self.choose();
                return if status == END { NEW_STREAM } else { status };
            }
            Err(Error::IoError(_)) => return CUT,
            Err(Error::DecodeError(_)) if self.errors < MAX_ERRORS => {
                self.errors += 1;
                return DAMAGED;
            }
            Err(_) => return BROKEN,
        };
        self.errors = 0;
        if packet.track_id != self.track {
            return self.next_of_other();
        }
        // A header tells the length of the file that it was written for. Where another was joined to it, that goes on behind.
        if self.is_mp3 && packet.trim_end > Duration::ZERO && packet.trim_end >= packet.dur {
            packet.trim_end = Duration::ZERO;
        }
        match &mut self.decoder {
            Decoder::Host => {
                self.packet = Some(packet);
                OPUS_PACKET
            }
            Decoder::Aac(decoder) => match decoder.decode(&packet.data, &mut self.samples) {
                Some(rate) => {
                    self.rate = rate;
                    self.channels = 1;
                    SAMPLES
                }
                None => DAMAGED,
            },
            Decoder::Symphonia(decoder) => match decoder.decode(&packet) {
                Ok(buffer) => {
                    self.rate = buffer.spec().rate();
                    self.channels = buffer.spec().channels().count() as u32;
                    buffer.copy_to_vec_interleaved(&mut self.samples);
                    SAMPLES
                }
                Err(Error::ResetRequired) => {
                    decoder.reset();
                    DAMAGED
                }
                Err(_) => DAMAGED,
            },
        }
    }

    /// A packet of pictures or another language: nothing is heard of it.
    fn next_of_other(&mut self) -> i32 {
        self.samples.clear();
        SAMPLES
    }
}

fn with<T: Default>(answer: impl FnOnce(&mut Session) -> T) -> T {
    SESSION.with_borrow_mut(|session| session.as_mut().map(answer).unwrap_or_default())
}

/// The next packet: END, SAMPLES, OPUS_PACKET, DAMAGED, NEW_STREAM or a negative number.
#[unsafe(no_mangle)]
pub extern "C" fn next() -> i32 {
    with(Session::next)
}

/// Hz of the samples.
#[unsafe(no_mangle)]
pub extern "C" fn rate() -> u32 {
    with(|session| session.rate)
}

/// The samples of all channels, interleaved.
#[unsafe(no_mangle)]
pub extern "C" fn samples() -> u32 {
    with(|session| session.samples.as_ptr() as u32)
}

#[unsafe(no_mangle)]
pub extern "C" fn channels() -> u32 {
    with(|session| session.channels)
}

#[unsafe(no_mangle)]
pub extern "C" fn sample_count() -> u32 {
    with(|session| session.samples.len() as u32)
}

#[unsafe(no_mangle)]
pub extern "C" fn packet() -> u32 {
    with(|session| session.packet.as_ref().map_or(0, |packet| packet.data.as_ptr() as u32))
}

#[unsafe(no_mangle)]
pub extern "C" fn packet_length() -> u32 {
    with(|session| session.packet.as_ref().map_or(0, |packet| packet.data.len() as u32))
}

/// Samples at the end of the packet that are not to be heard.
#[unsafe(no_mangle)]
pub extern "C" fn trim_end() -> u32 {
    with(|session| session.packet.as_ref().map_or(0, |packet| packet.trim_end.get() as u32))
}

#[unsafe(no_mangle)]
pub extern "C" fn head() -> u32 {
    with(|session| session.head.as_ptr() as u32)
}

#[unsafe(no_mangle)]
pub extern "C" fn head_length() -> u32 {
    with(|session| session.head.len() as u32)
}
