//! Patches and files as users name them.

use std::path::Path;

use talos_config::patch::Patch;

use crate::error::{Code, Error};
use crate::files;
use crate::session::Session;

/// Accepts the names of the one resource type that can be changed.
pub(crate) fn machine_config_type(text: &str) -> Result<String, String> {
    const NAMES: [&str; 5] = [
        "mc",
        "machineconfig",
        "machineconfigs",
        "machineconfigs.config",
        "machineconfigs.config.talos.dev",
    ];
    match NAMES.contains(&text.to_ascii_lowercase().as_str()) {
        true => Ok(text.to_owned()),
        false => Err(
            "only machine configurations can be changed: machineconfig, or mc for short".to_owned(),
        ),
    }
}

/// Accepts the namespace that machine configurations are in.
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    match text {
        "" | "config" => Ok(text.to_owned()),
        _ => Err("machine configurations are in the namespace `config`".to_owned()),
    }
}

/// Reads the patches of a flag: `@FILE`, the text itself, or the name of a file as talosctl guesses one.
pub(crate) fn read(
    session: &mut Session,
    flag: &str,
    sources: &[String],
) -> Result<Vec<Patch>, Error> {
    let mut patches = Vec::with_capacity(sources.len());
    for (index, source) in sources.iter().enumerate() {
        let text = match file_of(source) {
            Some(path) => text_for(
                session,
                &format!("{flag} {source} (patch {})", index + 1),
                path,
            )?,
            None => source.clone(),
        };
        session.output.learn_secrets_of(&text);
        let patch = Patch::parse(&text).map_err(|error| match file_of(source) {
            Some(path) => invalid(&error).context(format!("the patch {path} cannot be used")),
            None => invalid(&error).context(format!("patch {} cannot be used", index + 1)),
        })?;
        patches.push(patch);
    }
    Ok(patches)
}

/// Reads the file with the machine config, or standard input named `-`.
pub(crate) fn text_of(session: &mut Session, path: &str) -> Result<String, Error> {
    text_for(session, &format!("the machine config {path}"), path)
}

/// Reads a file, or standard input named `-`; `what` is the part of the command line that names it.
pub(crate) fn text_for(session: &mut Session, what: &str, path: &str) -> Result<String, Error> {
    match path {
        "-" | "/dev/stdin" => session.output.read_input(what),
        _ => files::read(Path::new(path)),
    }
}

/// Makes the error for a text that cannot be used, with every cause.
pub(crate) fn invalid(error: &talos_config::Error) -> Error {
    Error::of(Code::Invalid, error)
}

/// Makes the error for patches that a configuration refuses: the file of the patch is named where it came from one.
pub(crate) fn refused(error: &talos_config::Error, sources: &[String]) -> Error {
    if let talos_config::Error::InPatch { number, source } = error
        && let Some(path) = sources.get(number - 1).and_then(|source| file_of(source))
    {
        return invalid(source).context(format!("patch {path}"));
    }
    invalid(error)
}

/// Returns the file that an argument names.
pub(crate) fn file_of(source: &str) -> Option<&str> {
    if let Some(path) = source.strip_prefix('@') {
        return Some(path);
    }
    let is_text =
        source.is_empty() || source.starts_with(['[', '{']) || source.contains(['\n', ' ']);
    (!is_text).then_some(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_texts_are_told_apart_as_talosctl_does() {
        for (source, file) in [
            ("@p.yaml", Some("p.yaml")),
            ("@-", Some("-")),
            ("p.yaml", Some("p.yaml")),
            ("[]", None),
            ("{}", None),
            ("machine: {}", None),
            ("machine:\n", None),
            ("", None),
        ] {
            assert_eq!(file_of(source), file, "{source}");
        }
    }

    #[test]
    fn only_machine_configurations_can_be_changed() {
        assert!(machine_config_type("MachineConfig").is_ok());
        assert!(machine_config_type("members").is_err());
    }
}
