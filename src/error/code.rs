//! The codes of errors.

use strum::{IntoStaticStr, VariantArray};

/// The codes that callers compare: a name's text on the wire is the name in capitals, `PTY_BUSY` for `PtyBusy`. Codes are
/// added, never renamed or reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "each name is its text on the wire")]
pub enum ErrorCode {
    PtySessionNotFound,
    MissingParam,
    InvalidParam,
    UnknownAction,
    Deprecated,
    PtySpawnFailed,
    PtyLimitReached,
    PtyProcessExited,
    PtyWriteFailed,
    PtyReadFailed,
    PtyRunFailed,
    PtyResizeFailed,
    PtyKillFailed,
    PtyBusy,
    PtySecretPrompt,
    PtyIncompleteCommand,
    PtyTimeout,
    PtyAsks,
    DangerousCommandBlocked,
    TermReadDisabled,
    PtyNotAvailable,
    LeaderProtected,
    NotFound,
    Ambiguous,
    AlreadyOwned,
    PtyDesktopTimeout,
    PtyDesktopError,
    PtyDesktopRequestError,
    PtyDesktopJsonError,
    DesktopResizeDisabled,
    DesktopKillDisabled,
    Failed,
}

impl ErrorCode {
    /// All of them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
