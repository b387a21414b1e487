//! Codecs in WebAssembly: an instance decodes one file, or encodes one.
mod aac;
mod decode;
mod encode;
