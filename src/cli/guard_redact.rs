//! `kpty guard redact`: takes secrets out of what passes through it.

use std::io::{self, Read};

use super::{Failure, Outcome, print};
use crate::error::Error;
use kpty_guard::Redactor;

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// Copies standard input to standard output, secrets masked; whole lines go out as they come.
pub(super) fn run() -> Result<Outcome, Failure> {
    let mut stream = Redactor::default().stream();
    let mut input = io::stdin().lock();
    let mut piece = vec![0; PIECE];
    loop {
        let count = match input.read(&mut piece) {
            Ok(count) => count,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
            Err(cause) => return Err(Error::file("read", "standard input".as_ref(), cause).into()),
        };
        if count == 0 {
            break;
        }
        print::bytes(&stream.push(&piece[..count]))?;
    }
    print::bytes(&stream.finish())?;
    Ok(Outcome::Done)
}
