//! `ichor kubeconfig`: fetching an administrator's kubeconfig and bringing it into the user's.

use std::path::{Path, PathBuf};

use serde::Serialize;
use talos_config::kubeconfig::{Conflict, Kubeconfig, Merged, Resolution};

use crate::error::{Code, Error, Outcome};
use crate::files::{self, Access, Protocol};
use crate::output::OutputArgs;
use crate::session::Session;

/// Download the admin kubeconfig and merge it into the user's
///
/// Without a path it is merged into the one file that KUBECONFIG names, or into ~/.kube/config; `-` prints it. Entries
/// that differ from those of the same name are renamed, or replaced with --force.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to put it: a file, a folder, or `-`
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Replace an existing file, or entries of the same name when merging
    #[arg(short, long)]
    force: bool,
    /// Call the context this
    #[arg(long, value_name = "NAME")]
    force_context_name: Option<String>,
    /// Merge into an existing file
    #[arg(short, long, default_value = "true")]
    merge: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// What was done with a kubeconfig.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Written {
    /// The file.
    path: String,
    /// Whether it existed and was merged into.
    merged: bool,
    /// The context that is current in it.
    context: Option<String>,
    /// Entries that came in under another name.
    renamed: Vec<Renamed>,
    /// Entries that replaced others.
    overwritten: Vec<Entry>,
}

/// An entry that came in under another name.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Renamed {
    /// `cluster`, `user` or `context`.
    kind: &'static str,
    /// Its name in what the node sent.
    from: String,
    /// Its name in the file.
    to: String,
}

/// An entry of a kubeconfig.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Entry {
    /// `cluster`, `user` or `context`.
    kind: &'static str,
    /// Its name.
    name: String,
}

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let to_stdout = args.path.as_deref() == Some(Path::new("-"));
    let path = if to_stdout {
        PathBuf::new()
    } else {
        destination(&args, session)?
    };
    // Before anything is asked of a node, which issues a certificate for it.
    if !to_stdout && path.exists() && !args.merge && !args.force {
        let message = format!("{} exists already", path.display());
        return Err(Error::new(Code::Conflict, message).hint("--force replaces it"));
    }
    let target = session.reading_one("kubeconfig")?;
    let text = session.runtime()?.run(async {
        let (name, node) = target.only();
        node.kubeconfig()
            .await
            .map_err(|error| Error::from(error).node(name))
    })?;
    let incoming = Kubeconfig::parse("the node's kubeconfig", &text).map_err(unreadable)?;
    if to_stdout {
        let text = named(incoming, args.force_context_name.as_deref())?;
        session.output.bytes(text.text().as_bytes())?;
        return Ok(Outcome::Done);
    }
    let document = write(&args, &path, &incoming, session)?;
    say(session, &document)
}

/// Finds the file to write.
fn destination(args: &Args, session: &Session) -> Result<PathBuf, Error> {
    let path = match (&args.path, args.merge) {
        (Some(path), _) => path.clone(),
        (None, false) => PathBuf::from("."),
        (None, true) => usual_file(session)?,
    };
    Ok(if path.is_dir() {
        path.join("kubeconfig")
    } else {
        path
    })
}

/// Returns the one file that `KUBECONFIG` names, or else the one in the home folder.
pub(crate) fn usual_file(session: &Session) -> Result<PathBuf, Error> {
    if let Some(list) = session.env.path("KUBECONFIG") {
        let files: Vec<PathBuf> = std::env::split_paths(&list)
            .filter(|path| !path.as_os_str().is_empty())
            .collect();
        return match <[PathBuf; 1]>::try_from(files) {
            Ok([file]) => Ok(file),
            Err(files) => {
                let message = format!("KUBECONFIG names {} files", files.len());
                Err(Error::new(Code::Usage, message)
                    .hint("say which one to write: `ichor kubeconfig FILE`"))
            }
        };
    }
    let home = session.env.home().ok_or_else(|| {
        Error::new(
            Code::Usage,
            "there is no home folder to write .kube/config to",
        )
        .hint("say where to write: `ichor kubeconfig FILE`")
    })?;
    Ok(home.join(".kube/config"))
}

/// Writes the file; an existing one is merged into, unless it holds nothing.
///
/// The lock is not held while a person is asked: if the file is another one afterwards, all is done and asked again.
fn write(
    args: &Args,
    path: &Path,
    incoming: &Kubeconfig,
    session: &mut Session,
) -> Result<Written, Error> {
    loop {
        let existing = existing(args, path)?;
        let (text, document) = merged(args, path, &existing, incoming, session)?;
        let _lock = files::lock(path, Protocol::Kubeconfig, session)?;
        if self::existing(args, path)? != existing {
            continue;
        }
        if text != existing {
            files::write(path, text.as_bytes(), Access::Owner)?;
        }
        return Ok(document);
    }
}

/// Returns what is merged into: nothing if the file does not exist or is replaced.
fn existing(args: &Args, path: &Path) -> Result<String, Error> {
    match path.exists() && args.merge {
        true => files::read(path),
        false => Ok(String::new()),
    }
}

/// Makes the text of the file.
fn merged(
    args: &Args,
    path: &Path,
    existing: &str,
    incoming: &Kubeconfig,
    session: &mut Session,
) -> Result<(String, Written), Error> {
    let mut document = Written {
        path: path.display().to_string(),
        merged: false,
        context: None,
        renamed: Vec::new(),
        overwritten: Vec::new(),
    };
    let name = args.force_context_name.as_deref();
    if existing.trim().is_empty() {
        let config = named(incoming.clone(), name)?;
        document.context = config.current().map(str::to_owned);
        return Ok((config.text().to_owned(), document));
    }
    let mut config = Kubeconfig::parse(path.display().to_string(), existing).map_err(unreadable)?;
    let mut failure = None;
    let merged = config
        .merge(incoming, name, &mut |conflict| {
            resolve(args, conflict, session, &mut failure)
        })
        .map_err(unreadable)?;
    if let Some(error) = failure {
        return Err(error);
    }
    document.merged = true;
    tell(&mut document, merged);
    Ok((config.text().to_owned(), document))
}

/// Decides about a conflict: `--force` replaces, a person is asked, a script gets a new name.
fn resolve(
    args: &Args,
    conflict: &Conflict,
    session: &mut Session,
    failure: &mut Option<Error>,
) -> Resolution {
    if args.force {
        return Resolution::Overwrite;
    }
    if !session.output.is_interactive() || !session.output.stdout_is_terminal() || failure.is_some()
    {
        return Resolution::Rename;
    }
    let Conflict { kind, name } = conflict;
    loop {
        let question = format!("{kind} {name:?} exists and differs: (r)ename or (o)verwrite? ");
        match session.ask(&question) {
            Ok(answer) if matches!(answer.trim(), "r" | "rename") => return Resolution::Rename,
            Ok(answer) if matches!(answer.trim(), "o" | "overwrite") => {
                return Resolution::Overwrite;
            }
            Ok(answer) if answer.is_empty() => {
                *failure = Some(Error::new(Code::NotConfirmed, "not decided"));
                return Resolution::Rename;
            }
            Ok(_) => {}
            Err(error) => {
                *failure = Some(error);
                return Resolution::Rename;
            }
        }
    }
}

/// Gives the current context of a kubeconfig another name.
fn named(incoming: Kubeconfig, name: Option<&str>) -> Result<Kubeconfig, Error> {
    let Some(name) = name else {
        return Ok(incoming);
    };
    let empty = "apiVersion: v1\nkind: Config\n";
    let mut config = Kubeconfig::parse("the node's kubeconfig", empty).map_err(unreadable)?;
    config
        .merge(&incoming, Some(name), &mut |_| Resolution::Rename)
        .map_err(unreadable)?;
    Ok(config)
}

fn tell(document: &mut Written, merged: Merged) {
    document.context = merged.current;
    document.renamed = merged
        .renamed
        .into_iter()
        .map(|(kind, change)| Renamed {
            kind: kind.as_str(),
            from: change.from,
            to: change.to,
        })
        .collect();
    document.overwritten = merged
        .overwritten
        .into_iter()
        .map(|conflict| Entry {
            kind: conflict.kind.as_str(),
            name: conflict.name,
        })
        .collect();
}

fn say(session: &mut Session, document: &Written) -> Result<Outcome, Error> {
    if session.output.data(document)? {
        return Ok(Outcome::Done);
    }
    for Renamed { kind, from, to } in &document.renamed {
        session
            .output
            .line(&format!("renamed {kind} {from:?} -> {to:?}"))?;
    }
    for Entry { kind, name } in &document.overwritten {
        session.output.line(&format!("replaced {kind} {name:?}"))?;
    }
    let what = if document.merged {
        "merged into"
    } else {
        "written to"
    };
    let context = document.context.as_deref().unwrap_or_default();
    session.output.note(&format!(
        "kubeconfig {what} {}; its context is {context:?}",
        document.path
    ));
    Ok(Outcome::Done)
}

fn unreadable(error: talos_config::kubeconfig::Error) -> Error {
    Error::of(Code::Invalid, &error)
}
