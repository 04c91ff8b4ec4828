//! The built program, run as a user runs it, and the promises that the repository makes about itself.

mod fixtures;
mod replay;
mod support;
mod tidy;
