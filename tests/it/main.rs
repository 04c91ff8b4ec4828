//! The built program, run as a user runs it, and the promises that the repository makes about itself.

mod cli;
mod fixtures;
mod live;
mod pty_http;
mod registry;
mod replay;
mod serve;
mod server;
mod support;
mod talk;
mod tidy;
mod tools;
