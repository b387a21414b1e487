//! AAC that Symphonia leaves alone: more than two channels, HE-AAC (SBR, PS), frames of 960 samples, and AAC-LD.
use symphonia::core::codecs::audio::AudioCodecParameters;
use symphonia::core::codecs::audio::well_known::CODEC_ID_AAC;
use syom::{DecodeOptions, Decoder};

/// Hz by their index in an AudioSpecificConfig. Source: ISO/IEC 14496-3, table 1.18.
const RATES: [u32; 13] = [96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350];
const LOW_COMPLEXITY: u16 = 2;

pub struct AacDecoder {
    decoder: Decoder,
    config: Vec<u8>,
}

impl AacDecoder {
    /// None for what is no AAC, and for its other profiles.
    pub fn open(parameters: &AudioCodecParameters) -> Option<Self> {
        if parameters.codec != CODEC_ID_AAC {
            return None;
        }
        let config = match &parameters.extra_data {
            Some(config) => config.to_vec(),
            None => config_of(parameters)?,
        };
        // Length and time of a file are the host's affair.
        let mut options = DecodeOptions::speech();
        options.max_duration_secs = f64::INFINITY;
        let decoder = Decoder::from_asc(&config, options).ok()?;
        Some(Self { decoder, config })
    }

    /// The packet's channels without that of low frequencies, averaged, and their rate; None where it is damaged.
    pub fn decode(&mut self, packet: &[u8], mono: &mut Vec<f32>) -> Option<u32> {
        mono.clear();
        let mut rate = 0;
        let result = self.decoder.decode_au(packet, |frame| {
            rate = frame.sample_rate;
            mono.extend_from_slice(frame.planar.first().copied().unwrap_or_default());
            Ok(())
        });
        if result.is_err() {
            self.decoder.reset();
            self.decoder.set_asc(&self.config).ok()?;
            return None;
        }
        Some(rate)
    }
}

/// The configuration of a stream whose frames have it in their headers (ADTS).
fn config_of(parameters: &AudioCodecParameters) -> Option<Vec<u8>> {
    let rate = RATES.iter().position(|&rate| Some(rate) == parameters.sample_rate)? as u16;
    let channels = match parameters.channels.as_ref()?.count() {
        count @ 1..=6 => count as u16,
        8 => 7,
        _ => return None,
    };
    Some((LOW_COMPLEXITY << 11 | rate << 7 | channels << 3).to_be_bytes().to_vec())
}
