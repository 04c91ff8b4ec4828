//! The built program, run as a user runs it, and the promises that the repository makes about itself.

mod access;
mod bridge_http;
mod cli;
mod desktop;
mod desktop_app;
mod fixtures;
mod life;
mod live;
mod mcp;
mod persistence;
mod pty_http;
mod register;
mod registry;
mod replay;
mod screenshot;
mod serve;
mod server;
mod sizes;
mod speech;
mod support;
mod talk;
mod tidy;
mod tools;
mod traffic;
mod two_servers;
mod xterm;
