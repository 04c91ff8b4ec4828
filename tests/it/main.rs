//! The built program, run as a user runs it, and the promises that the repository makes about itself.

mod access;
mod actions;
mod attach;
#[cfg(target_os = "linux")]
mod attention;
mod bridge_http;
mod cli;
mod desktop;
mod desktop_app;
mod docs;
#[cfg(target_os = "linux")]
mod faults;
mod fixtures;
mod guard;
#[cfg(target_os = "linux")]
mod hostile;
mod layers;
mod leaks;
mod life;
mod live;
#[cfg(target_os = "linux")]
mod login;
mod mcp;
mod persistence;
mod pty_http;
mod record;
mod redaction;
mod register;
mod registry;
mod replay;
mod screenshot;
#[cfg(unix)]
mod secrets;
mod serve;
mod server;
mod sizes;
#[cfg(target_os = "linux")]
mod slow;
mod speech;
mod support;
mod talk;
mod term;
mod tidy;
mod tools;
mod traffic;
mod two_servers;
mod ui;
mod xterm;
