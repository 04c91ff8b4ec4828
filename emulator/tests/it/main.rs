//! The emulator's tests: bytes in, screens, texts and replies out. One binary, a module a subject.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]
#![allow(clippy::disallowed_methods, reason = "the environment names the corpora and the length of a run")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test says what it did not run")]

mod bounds;
mod clusters;
mod corpora;
mod corrections;
mod forwarding;
mod history;
mod margins;
mod markers;
mod place;
mod properties;
mod reads;
mod recordings;
mod rectangles;
mod replies;
mod stream;
mod support;
mod sync;
