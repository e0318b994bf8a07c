//! Reading the text of a kubeconfig.

use super::{Error, Hidden, Kubeconfig};

pub(super) fn parse(file: String, text: &str) -> Result<Kubeconfig, Error> {
    if text.trim().is_empty() {
        return Err(Error::Empty { file });
    }
    Ok(Kubeconfig {
        file,
        text: Hidden::new(text),
        current: None,
        clusters: Vec::new(),
        users: Vec::new(),
        contexts: Vec::new(),
    })
}
