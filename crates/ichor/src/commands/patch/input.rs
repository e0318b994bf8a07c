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
///
/// What is wrong with several of them is told together.
pub(crate) fn read(
    session: &mut Session,
    flag: &str,
    sources: &[String],
) -> Result<Vec<Patch>, Error> {
    let mut patches = Vec::with_capacity(sources.len());
    let mut faults = Vec::new();
    for (index, text) in texts(session, flag, sources)?.iter().enumerate() {
        match Patch::parse(text) {
            Ok(patch) => patches.push(patch),
            Err(error) => faults.push((index, invalid(&error))),
        }
    }
    let told = |(index, error): (usize, Error)| {
        error.context(format!("{} cannot be used", named(sources, index)))
    };
    match together(faults.into_iter().map(told).collect()) {
        None => Ok(patches),
        Some(error) => Err(error),
    }
}

/// Reads the patches of a flag as [`read`] does, and leaves what is wrong with their texts to be told with the rest.
pub(crate) fn unread(
    session: &mut Session,
    flag: &str,
    sources: &[String],
) -> Result<Vec<Patch>, Error> {
    let texts = texts(session, flag, sources)?.into_iter();
    let looked_at = |text: String| Patch::parse(&text).unwrap_or_else(|_| Patch::unread(text));
    Ok(texts.map(looked_at).collect())
}

fn texts(session: &mut Session, flag: &str, sources: &[String]) -> Result<Vec<String>, Error> {
    let mut read = Vec::with_capacity(sources.len());
    for (index, source) in sources.iter().enumerate() {
        let text = match file_of(source) {
            Some(path) => {
                let what = format!("{flag} {source} (patch {})", index + 1);
                text_for(session, &what, path)
            }
            None => Ok(source.clone()),
        };
        if let Ok(text) = &text {
            session.output.learn_secrets_of(text);
        }
        read.push(text);
    }
    if read.iter().all(Result::is_ok) {
        return Ok(read.into_iter().flatten().collect());
    }
    // What is wrong with those that could be read is told beside those that could not.
    let faults = read.into_iter().enumerate().filter_map(|(index, text)| {
        let fault = |error| {
            let named = named(sources, index);
            invalid(&error).context(format!("{named} cannot be used"))
        };
        match text {
            Ok(text) => Patch::parse(&text).err().map(fault),
            Err(error) => Some(error),
        }
    });
    Err(together(faults.collect())
        .unwrap_or_else(|| Error::new(Code::Invalid, "no patch can be used")))
}

/// Makes one error of several.
fn together(mut errors: Vec<Error>) -> Option<Error> {
    if errors.len() < 2 {
        return errors.pop();
    }
    let message = format!("{} patches cannot be used", errors.len());
    let code = errors[0].code();
    let told = errors.iter().map(Error::sentence);
    Some(told.fold(Error::new(code, message), Error::cause))
}

/// Names a patch by its number, and its file if it came from one.
fn named(sources: &[String], index: usize) -> String {
    match sources.get(index).and_then(|source| file_of(source)) {
        Some(path) => format!("patch {} ({path})", index + 1),
        None => format!("patch {}", index + 1),
    }
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

/// Makes the error for patches that a configuration refuses: each is named by its number, and its file if it came from one.
pub(crate) fn refused(error: &talos_config::Error, sources: &[String]) -> Error {
    match error {
        talos_config::Error::InPatch { number, source } => {
            invalid(source).context(named(sources, number - 1))
        }
        talos_config::Error::Problems { problems } => {
            let is_patch = |problem: &&talos_config::Error| {
                matches!(problem, talos_config::Error::InPatch { .. })
            };
            let message = match problems.iter().filter(is_patch).count() {
                1 => "a patch is at fault".to_owned(),
                count => format!("{count} patches are at fault"),
            };
            let causes = problems.iter().map(|problem| match problem {
                talos_config::Error::InPatch { number, source } => {
                    format!("{}: {source}", named(sources, number - 1))
                }
                problem => problem.to_string(),
            });
            causes.fold(Error::new(Code::Invalid, message), Error::cause)
        }
        error => invalid(error),
    }
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
