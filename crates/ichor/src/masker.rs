//! Masking what is secret in everything that is written, also by the libraries' own words under `-v`.

use std::io::Write;
use std::sync::{Arc, PoisonError, RwLock};

use talos_config::mask::Secrets;
use tracing_subscriber::fmt::MakeWriter;

/// Whose words `-v` shows, and up to which level.
const LIBRARIES: &str = "talos_client=debug";

/// What is secret in a run; clones share what they learn.
#[derive(Clone, Default)]
pub(crate) struct Masker(Arc<RwLock<Known>>);

#[derive(Default)]
struct Known {
    secrets: Secrets,
    show: bool,
}

impl Masker {
    /// Stops masking.
    pub(crate) fn show(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).show = true;
    }

    /// Tells whether nothing is masked.
    pub(crate) fn shows(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).show
    }

    /// Adds to what is secret.
    pub(crate) fn learn(&self, learn: impl FnOnce(&mut Secrets)) {
        learn(
            &mut self
                .0
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .secrets,
        );
    }

    /// Masks what is secret in a text.
    pub(crate) fn mask(&self, text: &str) -> String {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match known.show {
            true => text.to_owned(),
            false => known.secrets.mask(text),
        }
    }

    /// Has the libraries tell on stderr what they try, such as which endpoint does not answer and why.
    pub(crate) fn tell_more(self) {
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(LIBRARIES)
            .with_writer(Masked {
                masker: self,
                target: std::io::stderr,
            })
            .with_ansi(false)
            .without_time();
        // Only a second run in the same process finds one set, and that one does the same.
        let _ = subscriber.try_init();
    }
}

/// Makes writers that mask what goes to `target`.
#[derive(Clone)]
struct Masked<M> {
    masker: Masker,
    target: M,
}

impl<W: Write, M: Fn() -> W> MakeWriter<'_> for Masked<M> {
    type Writer = Line<W>;

    fn make_writer(&self) -> Self::Writer {
        Line {
            masker: self.masker.clone(),
            target: (self.target)(),
        }
    }
}

/// Writes one event, which comes in one piece.
struct Line<W> {
    masker: Masker,
    target: W,
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = self.masker.mask(&String::from_utf8_lossy(bytes));
        self.target.write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.target.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_learned_later_is_masked_in_what_libraries_tell() {
        let masker = Masker::default();
        let made = Masked {
            masker: masker.clone(),
            target: Vec::new,
        };
        masker.learn(|secrets| secrets.add("sesame-open-wide"));
        let tell = |text: &str| {
            let mut line = made.make_writer();
            line.write_all(text.as_bytes()).unwrap();
            String::from_utf8(line.target).unwrap()
        };
        assert_eq!(
            tell("the server says sesame-open-wide\n"),
            "the server says ******\n"
        );
        masker.show();
        assert_eq!(tell("sesame-open-wide"), "sesame-open-wide");
    }
}
