//! Spoken answers as FLAC and AAC: `encoder_open`, `encoder_push` for every piece of sound, then `encoder_finish`. Mono, 16 bit.
use std::cell::RefCell;

use flacenc::bitsink::MemSink;
use flacenc::component::{BitRepr, Stream, StreamInfo};
use flacenc::config;
use flacenc::encode_fixed_size_frame;
use flacenc::error::{Verified, Verify};
use flacenc::source::{Context, Fill, FrameBuf};

const FLAC: u32 = 0;
const BITS: usize = 16;
/// Samples of a FLAC frame.
const BLOCK: usize = 4096;

struct Flac {
    config: Verified<config::Encoder>,
    info: StreamInfo,
    /// One frame, and what is known of all frames: their number and their sum.
    frame: (FrameBuf, Context),
    /// Samples that do not fill a frame yet.
    rest: Vec<i32>,
}

enum Encoder {
    Flac(Box<Flac>),
    Aac(Box<syom::Encoder>),
}

struct Session {
    encoder: Encoder,
    /// What the host writes: samples of 16 bit.
    input: Vec<i16>,
    output: Vec<u8>,
    has_sound: bool,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

impl Flac {
    fn new(rate: u32) -> Option<Flac> {
        let config = config::Encoder::default().into_verified().ok()?;
        let mut info = StreamInfo::new(rate as usize, 1, BITS).ok()?;
        info.set_block_sizes(BLOCK, BLOCK).ok()?;
        let frame = (FrameBuf::with_size(1, BLOCK).ok()?, Context::new(BITS, 1));
        Some(Flac { config, info, frame, rest: Vec::new() })
    }

    /// What the file begins with, with what is known of it so far.
    fn head(&self) -> Option<Vec<u8>> {
        let mut sink = MemSink::<u8>::new();
        Stream::with_stream_info(self.info.clone()).write(&mut sink).ok()?;
        Some(sink.into_inner())
    }

    /// Frames of all samples so far; whole ones only, unless it is the end.
    fn frames(&mut self, is_end: bool) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let whole = if is_end { self.rest.len() } else { self.rest.len() / BLOCK * BLOCK };
        let samples: Vec<i32> = self.rest.drain(..whole).collect();
        for block in samples.chunks(BLOCK) {
            self.frame.0.resize(block.len());
            self.frame.fill_interleaved(block).ok()?;
            let number = self.frame.1.current_frame_number()?;
            let frame = encode_fixed_size_frame(&self.config, &self.frame.0, number, &self.info).ok()?;
            let mut sink = MemSink::<u8>::new();
            frame.write(&mut sink).ok()?;
            out.extend_from_slice(sink.as_slice());
        }
        Some(out)
    }

    fn finish(&mut self) -> Option<Vec<u8>> {
        let out = self.frames(true)?;
        self.info.set_total_samples(self.frame.1.total_samples());
        self.info.set_md5_digest(&self.frame.1.md5_digest());
        Some(out)
    }
}

impl Session {
    fn push(&mut self) -> Option<()> {
        self.has_sound |= !self.input.is_empty();
        match &mut self.encoder {
            Encoder::Flac(flac) => {
                flac.rest.extend(self.input.iter().map(|&sample| i32::from(sample)));
                self.output = flac.frames(false)?;
            }
            Encoder::Aac(aac) => {
                let samples: Vec<f32> = self.input.iter().map(|&sample| f32::from(sample) / 32768.0).collect();
                let output = &mut self.output;
                output.clear();
                aac.feed(&[&samples], |frame| {
                    output.extend_from_slice(frame.au);
                    Ok(())
                })
                .ok()?;
            }
        }
        Some(())
    }

    fn finish(&mut self) -> Option<()> {
        match &mut self.encoder {
            Encoder::Flac(flac) => self.output = flac.finish()?,
            Encoder::Aac(aac) => {
                let output = &mut self.output;
                output.clear();
                // It refuses to end what has not begun.
                if !self.has_sound {
                    return Some(());
                }
                aac.finish(|frame| {
                    output.extend_from_slice(frame.au);
                    Ok(())
                })
                .ok()?;
            }
        }
        Some(())
    }
}

fn with(answer: impl FnOnce(&mut Session) -> Option<()>) -> i32 {
    let done = SESSION.with_borrow_mut(|session| session.as_mut().and_then(answer));
    if done.is_some() { 0 } else { -1 }
}

/// Begins a file of this format at `rate` Hz; AAC with as many bits a second. 0, or -1 for what cannot be.
#[unsafe(no_mangle)]
pub extern "C" fn encoder_open(format: u32, rate: u32, bits: u32) -> i32 {
    let encoder = if format == FLAC {
        Flac::new(rate).map(|flac| Encoder::Flac(Box::new(flac)))
    } else {
        let options = syom::EncodeOptions::adts().with_bitrate_bps(bits);
        syom::Encoder::new(rate, 1, &options).ok().map(|aac| Encoder::Aac(Box::new(aac)))
    };
    let opened = encoder.is_some();
    SESSION.set(encoder.map(|encoder| Session { encoder, input: Vec::new(), output: Vec::new(), has_sound: false }));
    if opened { 0 } else { -1 }
}

/// Where the host is to write as many samples.
#[unsafe(no_mangle)]
pub extern "C" fn encoder_input(samples: u32) -> *mut i16 {
    SESSION.with_borrow_mut(|session| {
        let Some(session) = session else { return std::ptr::null_mut() };
        session.input.resize(samples as usize, 0);
        session.input.as_mut_ptr()
    })
}

/// Encodes what was written there. 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn encoder_push() -> i32 {
    with(Session::push)
}

/// The end of the file. 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn encoder_finish() -> i32 {
    with(Session::finish)
}

/// What the file begins with: before the first piece without what only its end tells, after `encoder_finish` with that. 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn encoder_head() -> i32 {
    with(|session| {
        session.output = match &session.encoder {
            Encoder::Flac(flac) => flac.head()?,
            Encoder::Aac(_) => Vec::new(),
        };
        Some(())
    })
}

/// What the last call made.
#[unsafe(no_mangle)]
pub extern "C" fn encoder_output() -> *const u8 {
    SESSION.with_borrow(|session| session.as_ref().map_or(std::ptr::null(), |session| session.output.as_ptr()))
}

#[unsafe(no_mangle)]
pub extern "C" fn encoder_output_length() -> u32 {
    SESSION.with_borrow(|session| session.as_ref().map_or(0, |session| session.output.len() as u32))
}
