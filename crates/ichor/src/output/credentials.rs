//! Output that was asked for with its secrets.

use std::io::Write as _;

use serde::Serialize;
use talos_config::mask;

use super::Output;
use crate::error::{Code, Error};

impl Output {
    /// Prints a text as it is for a pipe or a file, and masked where a person looks at it; `ways` lead to the secrets.
    pub(crate) fn credentials(&mut self, text: &str, ways: &str) -> Result<(), Error> {
        if self.stdout_is_terminal() && !self.shows_secrets() {
            self.note(&format!(
                "secrets are masked on a terminal; {ways} or --show-secrets gives them"
            ));
            return self.bytes(mask::text(text).as_bytes());
        }
        self.bytes(text.as_bytes())
    }

    /// Prints a value as one JSON document with its secrets: whoever asks for one hands it on.
    pub(crate) fn credentials_json<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
    ) -> Result<(), Error> {
        let text =
            serde_json::to_string_pretty(value).map_err(|error| Error::of(Code::Failed, &error))?;
        writeln!(self.io.stdout, "{text}")?;
        Ok(())
    }
}
