//! The one error of the program: what failed, where, why, and what to do next, with the exit code that scripts see.

mod below;
mod kubernetes;
mod rotate;

use serde::Serialize;

/// What a run that did not fail came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done; for checks, nothing was found.
    Done,
    /// A check found something: a certificate or validation finding, a difference with `--exit-code`, a blocked plan.
    Found,
    /// Some nodes failed and were reported, the others succeeded.
    SomeNodesFailed,
    /// Every node failed and was reported; the code is the one they share.
    AllNodesFailed(Code),
}

impl Outcome {
    /// Returns the exit code of this outcome.
    pub(crate) fn exit(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Found => 3,
            Self::SomeNodesFailed => 4,
            Self::AllNodesFailed(code) => code.exit(),
        }
    }
}

/// The stable word for a kind of failure; each belongs to one exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Code {
    /// Something failed that has no better word.
    Failed,
    /// This version of Talos, or this program, cannot do it.
    Unimplemented,
    /// The named thing does not exist.
    NotFound,
    /// The command line is wrong.
    Usage,
    /// An input file, patch or value cannot be read or is not valid.
    Invalid,
    /// The node looked at the request and refused it, such as a machine config that does not validate.
    RefusedByNode,
    /// Something that must hold first does not.
    Precondition,
    /// Another change is under way, or the thing exists already.
    Conflict,
    /// A dangerous step was not confirmed.
    NotConfirmed,
    /// The client certificate is expired, not yet valid, of the wrong kind, or was rejected.
    ClientCertificate,
    /// The caller's roles do not allow it.
    NotAllowed,
    /// The server's certificate is not trusted: authority, name or dates.
    Untrusted,
    /// Nothing answers there.
    Unreachable,
    /// The answer took too long.
    TimedOut,
    /// The user interrupted the run.
    Interrupted,
    /// Whoever read the output went away; ends quietly.
    ClosedPipe,
}

impl Code {
    /// Returns the exit code of this kind of failure.
    pub(crate) fn exit(self) -> u8 {
        match self {
            Self::ClosedPipe => 0,
            Self::Failed | Self::Unimplemented | Self::NotFound => 1,
            Self::Usage | Self::Invalid | Self::RefusedByNode => 2,
            Self::Precondition | Self::Conflict | Self::NotConfirmed => 5,
            Self::ClientCertificate | Self::NotAllowed | Self::Untrusted => 6,
            Self::Unreachable | Self::TimedOut => 7,
            Self::Interrupted => 130,
        }
    }
}

/// A failure as people and scripts see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error(Box<Details>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Details {
    /// The stable word for the kind of failure.
    pub(crate) code: Code,
    /// What was tried and failed, one sentence.
    pub(crate) message: String,
    /// Every cause, outermost first.
    pub(crate) causes: Vec<String>,
    /// The node it failed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// The endpoint that was dialled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) endpoint: Option<String>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

impl Error {
    /// Makes an error from a message: a lower-case fragment without a final period.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            code,
            message: message.into(),
            causes: Vec::new(),
            node: None,
            endpoint: None,
            hint: None,
        }))
    }

    /// Makes an error whose message is `source`'s own and whose causes are the rest of its chain.
    pub(crate) fn of(code: Code, source: &(dyn std::error::Error + 'static)) -> Self {
        let mut error = Self::new(code, source.to_string());
        error.0.causes = chain(source.source());
        error
    }

    /// Puts `message` in front; what was the message becomes the first cause.
    pub(crate) fn context(mut self, message: impl Into<String>) -> Self {
        let inner = std::mem::replace(&mut self.0.message, message.into());
        self.0.causes.insert(0, inner);
        self
    }

    /// Adds `source` and its whole chain to the causes.
    pub(crate) fn caused_by(mut self, source: &(dyn std::error::Error + 'static)) -> Self {
        self.0.causes.extend(chain(Some(source)));
        self
    }

    /// Adds a cause.
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.0.causes.push(cause.into());
        self
    }

    /// Names the node.
    pub(crate) fn node(mut self, node: impl Into<String>) -> Self {
        self.0.node = Some(node.into());
        self
    }

    /// Names the endpoint.
    pub(crate) fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.0.endpoint = Some(endpoint.into());
        self
    }

    /// Says what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Returns the kind of failure.
    pub(crate) fn code(&self) -> Code {
        self.0.code
    }

    /// Returns everything there is to print.
    pub(crate) fn details(&self) -> &Details {
        &self.0
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// Hands the error to a library that will give it back as a cause: with all its own causes in one sentence.
    pub(crate) fn into_cause(self) -> Box<dyn std::error::Error + Send + Sync> {
        self.sentence().into()
    }

    /// Joins the message and its causes.
    pub(crate) fn sentence(&self) -> String {
        let message = std::iter::once(&self.0.message);
        let parts: Vec<&str> = message.chain(&self.0.causes).map(String::as_str).collect();
        parts.join(": ")
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::new(Code::ClosedPipe, "output closed"),
            _ => Self::of(Code::Failed, &error),
        }
    }
}

/// Makes the error of a verb that is not built yet.
pub(crate) fn not_implemented(verb: &str) -> Error {
    Error::new(
        Code::Unimplemented,
        format!("{verb} is not implemented yet"),
    )
}

/// Lists the messages of an error chain without repeating one that a layer copied from the layer below.
fn chain(mut source: Option<&(dyn std::error::Error + 'static)>) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    while let Some(error) = source {
        let text = error.to_string();
        if causes.last() != Some(&text) {
            causes.push(text);
        }
        source = error.source();
    }
    causes
}
