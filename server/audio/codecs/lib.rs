//! Codecs in WebAssembly: an instance decodes one file, or encodes one.
mod decode;
mod encode;
